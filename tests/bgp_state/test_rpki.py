"""Route origin validation (RFC 6811) against files of VRPs as two programs write them."""

import pytest

from pathbudget.probes.bgp.prefix_text import prefix_bits
from pathbudget.probes.errors import ConfigError
from pathbudget.sites.rpki import RpkiState, load_vrps, read_vrps

RPKI_CLIENT = (
    b'{"metadata":{"buildtime":"2026-01-01"},"roas":['
    b'{"asn":64500,"prefix":"203.0.113.0/24","maxLength":26,"ta":"ripe","expires":1800000000},'
    b'{"asn":0,"prefix":"198.51.100.0/24","maxLength":24,"ta":"ripe"},'
    b'{"asn":64501,"prefix":"2001:db8::/32","maxLength":48,"ta":"arin"}]}'
)
ROUTINATOR = b'{"roas":[{"asn":"AS64500","prefix":"203.0.113.0/24","maxLength":26,"ta":"ripe"}]}'
CSV = b"ASN,IP Prefix,Max Length,Trust Anchor,Expires\nAS64500,203.0.113.0/24,26,ripe,1800000000\n"
VALID, INVALID, NOT_FOUND = RpkiState.VALID, RpkiState.INVALID, RpkiState.NOT_FOUND


@pytest.mark.parametrize("content", [RPKI_CLIENT, ROUTINATOR, CSV], ids=["json", "AS", "csv"])
@pytest.mark.parametrize(
    ("prefix", "origin", "state"),
    [
        ("203.0.113.0/24", 64500, VALID),
        ("203.0.113.64/26", 64500, VALID),
        ("203.0.113.64/27", 64500, INVALID),
        ("203.0.113.0/24", 64999, INVALID),
        ("203.0.113.0/24", None, INVALID),
        ("203.0.112.0/23", 64500, NOT_FOUND),
        ("192.0.2.0/24", 64500, NOT_FOUND),
    ],
    ids=["exact", "part", "too fine", "other AS", "set", "wider", "elsewhere"],
)
def test_states(content: bytes, prefix: str, origin: int | None, state: RpkiState) -> None:
    assert read_vrps(content, "vrps").state(prefix, origin) is state


def test_as0_allows_nobody() -> None:
    """RFC 6483, 4."""
    table = read_vrps(RPKI_CLIENT, "vrps")
    assert table.state("198.51.100.0/24", 0) is INVALID
    assert table.state("2001:db8:5::/48", 64501) is VALID
    assert table.count == 3


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "holds no VRP"),
        (b"{", "not readable"),
        (b'{"roas":[{"asn":1,"prefix":"nowhere","maxLength":24}]}', "roas[0]: 'nowhere' is no pre"),
        (b'{"roas":[{"asn":"ASx","prefix":"10.0.0.0/8","maxLength":8}]}', "'ASx' is no AS number"),
        (b'{"roas":[{"asn":1,"prefix":"10.0.0.0/8","maxLength":7}]}', "7 is no length"),
        (b"ASN,IP Prefix,Max Length\nAS1\n", "line 2: 1 columns"),
        (b"\xff\xfe\x00", "line 1: 1 columns"),
    ],
    ids=["empty", "cut", "prefix", "asn", "length", "columns", "binary"],
)
def test_faults_are_named_with_their_place(content: bytes, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_vrps(content, "vrps.json")
    assert words in str(caught.value)
    assert str(caught.value).startswith("vrps.json")


def test_a_file_that_is_not_there(tmp_path) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ConfigError, match="cannot be read"):
        load_vrps(tmp_path / "none")


def test_prefixes_as_numbers() -> None:
    wide = prefix_bits("203.0.112.0/20")
    assert wide.covers(prefix_bits("203.0.113.0/24"))
    assert wide.covers(prefix_bits("203.0.113.9"))
    assert not prefix_bits("203.0.113.0/24").covers(wide)
    assert not prefix_bits("::/0").covers(wide)
    assert str(prefix_bits("2001:db8::1").cut_to(32)) == "2001:db8::/32"
    assert str(prefix_bits("10.9.8.7/8")) == "10.0.0.0/8"
    for wrong in ("", "10.0.0.0/33", "10.0.0.0/x", "10.0.0", "10.0.0.0/"):
        with pytest.raises(ValueError, match="is no prefix"):
            prefix_bits(wrong)
