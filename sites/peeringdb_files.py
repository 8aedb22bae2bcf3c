"""Files of PeeringDB: answers of its API, whole dumps, and dumps of its own database.

{"data": [{...}], "meta": {}}                                an answer; its keys say of what
{"fac": {"data": [{...}]}, "net": {"data": [...]}, ...}      a dump of everything
[{"model": "django_peeringdb.facility", "pk": 1, "fields": {...}}]    rows of the database
"""

import gzip
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from pathbudget.probes.errors import ConfigError, Fault

Object = Mapping[str, object]

LARGEST_FILE = 1 << 30
GZIP = b"\x1f\x8b"

KINDS = ("fac", "ix", "net", "ixfac", "netfac", "netixlan", "ixlan", "org")
MODELS = {
    "facility": "fac",
    "internetexchange": "ix",
    "network": "net",
    "internetexchangefacility": "ixfac",
    "networkfacility": "netfac",
    "networkixlan": "netixlan",
    "ixlan": "ixlan",
    "organization": "org",
    "carrierfacility": "carrierfac",
    "ixlanprefix": "ixpfx",
    "networkcontact": "poc",
}
BY_KEYS: tuple[tuple[str, frozenset[str]], ...] = (
    ("netixlan", frozenset({"net_id", "ixlan_id"})),
    ("netfac", frozenset({"net_id", "fac_id"})),
    ("ixfac", frozenset({"ix_id", "fac_id"})),
    ("ixlan", frozenset({"ix_id", "mtu"})),
    ("net", frozenset({"asn", "name"})),
    ("ix", frozenset({"name", "proto_unicast"})),
    ("fac", frozenset({"name", "clli"})),
    ("fac", frozenset({"name", "org_name", "latitude"})),
)
"""What an object is, by keys that only it has; looked at in this order."""

NOT_NEEDED = ("campus", "carrier", "carrierfac", "ixpfx", "poc", "as_set", "api")


@dataclass(slots=True)
class Objects:
    """Objects by kind and identifier, and what was left out."""

    kinds: dict[str, dict[int, Object]] = field(
        default_factory=lambda: {kind: dict[int, Object]() for kind in KINDS}
    )
    left_out: Counter[str] = field(default_factory=Counter[str])
    read: int = 0

    def of(self, kind: str) -> dict[int, Object]:
        """All objects of a kind."""
        return self.kinds[kind]


def read_peeringdb(paths: Sequence[Path]) -> Objects:
    """Everything in the files. Raises ConfigError for files that cannot be used, with the reason.

    Later objects of the same kind and identifier take the place of earlier ones, which is counted.
    """
    objects, faults = Objects(), list[Fault]()
    for path in paths:
        content = _content(path, faults)
        if content is not None:
            take(content, path.name, str(path), objects, faults)
    if not faults and not objects.of("fac"):
        files = ", ".join(str(path) for path in paths)
        faults.append(Fault(files, "", "no facility in it", "a file with fac objects"))
    if faults:
        raise ConfigError(faults)
    return objects


def take(content: bytes, name: str, file: str, objects: Objects, faults: list[Fault]) -> None:
    """Put what one file holds into `objects`, or note why it cannot be read."""
    try:
        tree = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        words = str(error) or "too deep"
        faults.append(Fault(file, "", f"not JSON: {words}", "a file of PeeringDB"))
        return
    try:
        found = list(_objects(tree, name))
    except ValueError as error:
        faults.append(Fault(file, "", str(error), 'an answer {"data": [...]} or a dump'))
        return
    for kind, key, values in found:
        _keep(objects, kind, key, values)


def _keep(objects: Objects, kind: str, key: object, values: object) -> None:
    objects.read += 1
    if kind in NOT_NEEDED:
        objects.left_out[f"{kind} objects, which say nothing of sites"] += 1
    elif not isinstance(values, dict):
        objects.left_out["entries that are no objects"] += 1
    elif kind not in KINDS:
        objects.left_out["objects of an unknown kind"] += 1
    elif isinstance(key, bool) or not isinstance(key, int) or key <= 0:
        objects.left_out[f"{kind} objects without an identifier"] += 1
    elif values.get("status", "ok") != "ok":
        objects.left_out[f"{kind} objects that are not in use (status)"] += 1
    else:
        if key in objects.of(kind):
            objects.left_out[f"{kind} objects that came again; the last one counts"] += 1
        objects.of(kind)[key] = values


def _objects(tree: object, name: str) -> Iterator[tuple[str, object, object]]:
    """Kind, identifier, values. Raises ValueError for a tree of another form."""
    if isinstance(tree, list):
        yield from _rows(tree, name)
    elif isinstance(tree, dict) and isinstance(tree.get("data"), list):
        yield from _answer(tree["data"], name)
    elif isinstance(tree, dict) and any(kind in tree for kind in KINDS):
        for kind, part in tree.items():
            rows = part.get("data") if isinstance(part, dict) else part
            if not isinstance(rows, list):
                if kind in KINDS:
                    raise ValueError(f"{kind} holds no list of objects")
                continue
            for one in rows:
                yield kind, _key(one), one
    else:
        raise ValueError(_other(tree))


def _other(tree: object) -> str:
    if isinstance(tree, dict) and isinstance(meta := tree.get("meta"), dict) and meta.get("error"):
        return f"PeeringDB answered with an error: {str(meta['error'])[:100]}"
    return "holds no objects of PeeringDB"


def _rows(tree: Sequence[object], name: str) -> Iterator[tuple[str, object, object]]:
    """Rows of the database; a bare list of API objects is read too."""
    for one in tree:
        if isinstance(one, dict) and isinstance(one.get("model"), str):
            model = str(one["model"]).rpartition(".")[2]
            yield MODELS.get(model, model), one.get("pk"), one.get("fields")
        else:
            yield from _answer([one], name)


def _answer(rows: Sequence[object], name: str) -> Iterator[tuple[str, object, object]]:
    hint = _hint(name)
    for one in rows:
        yield _kind(one, hint), _key(one), one


def _key(one: object) -> object:
    return one.get("id") if isinstance(one, dict) else None


def _kind(one: object, hint: str) -> str:
    """By the name of the file where that says it, else by keys that only one kind has."""
    if hint or not isinstance(one, dict):
        return hint
    keys = set(one)
    return next((kind for kind, needed in BY_KEYS if needed <= keys), "")


def _hint(name: str) -> str:
    """``fac-0.json``, ``cache__netfac-0.json``: the kind as a word of its own."""
    words = re.split(r"[^a-z_]+|__", name.lower())
    return next((word for word in words if word in {*KINDS, *NOT_NEEDED}), "")


def _content(path: Path, faults: list[Fault]) -> bytes | None:
    """The whole file, unpacked where it is gzip."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
        if content.startswith(GZIP):
            with gzip.open(path) as packed:
                content = packed.read(LARGEST_FILE + 1)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        faults.append(Fault(str(path), "", f"cannot be read: {reason}", "a file of PeeringDB"))
        return None
    if len(content) > LARGEST_FILE:
        faults.append(Fault(str(path), "", "over 1 GiB", "a dump of PeeringDB"))
        return None
    return content
