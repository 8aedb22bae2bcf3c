"""A datagram is known by its payload alone, or not at all."""

from pathbudget.probes.sent_payloads import SentPayloads

PLACE, OTHER = (40_000, "192.0.2.9", 443), (40_001, "192.0.2.9", 443)
SECRET = b"\x9a\x12seCret"


def payload(token: int, size: int = 12) -> bytes:
    return (SECRET + token.to_bytes(2, "big") + b"\x77\x01").ljust(size, b"p")


def sent(*tokens: int, size: int = 12, remembered: int = 100) -> SentPayloads:
    found = SentPayloads(remembered)
    for token in tokens:
        found.add(PLACE, payload(token, size), bytes((token,)))
    return found


def test_a_quote_is_found_whole_filled_up_and_with_extensions_behind() -> None:
    found = sent(1, 2, 3)
    for behind in (b"", bytes(100), bytes(88) + b"\x20\x00\xab\xcd\x00\x08\x01\x01"):
        assert found.find(PLACE, payload(2) + behind) == b"\x02"


def test_a_quote_that_is_cut_short_is_found_where_it_fits_one_alone() -> None:
    found = sent(1, 2, 3, size=40)
    assert found.find(PLACE, payload(2, 40)[:20]) == b"\x02"
    assert found.find(PLACE, payload(2, 40)[:10] + bytes(90)) == b"\x02"
    for nobody in (SECRET, SECRET[:3] + bytes(50), bytes(64), b"", b"else"):
        assert found.find(PLACE, nobody) is None


def test_flows_are_told_apart_and_lengths_do_not_mislead() -> None:
    found = sent(1)
    found.add(OTHER, payload(1), b"other")
    found.add(PLACE, b"", b"empty")
    found.add(PLACE, payload(1)[:9], b"short")
    assert found.find(OTHER, payload(1)) == b"other"
    assert found.find(PLACE, payload(1)) == b"\x01"
    assert found.find((1, "192.0.2.9", 443), payload(1)) is None


def test_the_oldest_are_forgotten_and_the_same_again_counts_once() -> None:
    found = sent(1, 2, 2, 2, 3, remembered=3)
    assert found.find(PLACE, payload(1)) == b"\x01"
    found.add(OTHER, payload(4), b"\x04")
    assert found.find(PLACE, payload(1)) is None
    for token in (5, 6, 7):
        found.add(OTHER, payload(token), b"")
    assert found.find(PLACE, payload(3)) is None
    assert found.find(OTHER, payload(4)) is None
