"""Fuzz target of the files of PeeringDB. See tests/fuzzing.py."""

from pathbudget.probes.errors import Fault
from pathbudget.sites.peeringdb import Wanted, sites_of
from pathbudget.sites.peeringdb_files import Objects, take

OPENINGS = (b"", b'{"data": [', b'[{"model": "django_peeringdb.facility", "pk": 1, "fields": ')
ENDINGS = (b"", b"]}", b"}]")


def fuzz_one_peeringdb(data: bytes) -> None:
    """Any bytes are objects that are kept or counted, or a fault; sites have places on Earth."""
    form = len(data) % 3
    objects, faults = Objects(), list[Fault]()
    take(OPENINGS[form] + data + ENDINGS[form], "fac.json", "fac.json", objects, faults)
    kept = sum(len(found) for found in objects.kinds.values())
    assert kept + sum(objects.left_out.values()) == objects.read
    for site in sites_of(objects, Wanted()).sites:
        assert abs(site.latitude) <= 90
        assert abs(site.longitude) <= 180
