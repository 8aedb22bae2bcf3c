"""The filters of trace sockets, run by an interpreter of the few instructions that they use."""

from hypothesis import given, settings
from hypothesis import strategies as st

from pathbudget.probes.path_filter import (
    MOST_RANGES,
    TCP_BYTES,
    Instruction,
    icmp_program,
    ranges,
    tcp_program,
)
from pathbudget.probes.record import AddressFamily

V4, V6 = AddressFamily.IPV4, AddressFamily.IPV6
numbers = st.sets(st.integers(0, 65_535), max_size=200)


def run(code: list[Instruction], packet: bytes) -> int:
    """What a classic BPF program returns: octets to take. Loads beyond the packet drop it."""
    a = x = at = 0
    while True:
        operation, yes, no, k = code[at]
        at += 1
        if operation == 0x06:
            return k
        if operation == 0xB1:
            x = (packet[k] & 15) * 4
        elif operation in (0x50, 0x30, 0x48, 0x28):
            start = k + (x if operation in (0x50, 0x48) else 0)
            size = 1 if operation in (0x50, 0x30) else 2
            if start + size > len(packet):
                return 0
            a = int.from_bytes(packet[start : start + size], "big")
        else:
            holds = {0x15: a == k, 0x25: a > k, 0x35: a >= k, 0x45: bool(a & k)}[operation]
            at += yes if holds else no


def packet(family: AddressFamily, transport: bytes, options: int = 0) -> bytes:
    header = bytes((0x45 + options,)) + bytes(19 + 4 * options)
    return header + transport if family is V4 else transport


def segment(port: int, flags: int) -> bytes:
    return bytes(2) + port.to_bytes(2, "big") + bytes(9) + bytes((flags,)) + bytes(6)


@given(numbers)
@settings(max_examples=30)
def test_ranges_hold_all_and_join_only_where_they_must(held: set[int]) -> None:
    found = ranges(held)
    assert len(found) <= MOST_RANGES
    assert all(any(low <= one <= high for low, high in found) for one in held)
    assert all(found[at][1] + 1 < found[at + 1][0] for at in range(len(found) - 1))
    if len(held) <= MOST_RANGES:
        assert {one for low, high in found for one in range(low, high + 1)} == held


@given(numbers, st.integers(0, 65_535), st.sampled_from([V4, V6]), st.integers(0, 10))
@settings(max_examples=40)
def test_tcp_is_heard_to_our_ports_alone(
    held: set[int], port: int, family: AddressFamily, options: int
) -> None:
    code = tcp_program(family, held)
    assert len(code) < 255
    for one in (*held, port):
        heard = any(low <= one <= high for low, high in ranges(held))
        for flags in (0x12, 0x14, 0x10, 0x18):
            taken = run(code, packet(family, segment(one, flags), options))
            assert taken == (TCP_BYTES if heard else 0)
        assert run(code, packet(family, segment(one, 0x02), options)) == 0  # others' SYNs


@given(numbers, st.integers(0, 65_535), st.sampled_from([V4, V6]))
@settings(max_examples=40)
def test_errors_are_always_heard_and_echo_replies_with_our_identifiers(
    held: set[int], identifier: int, family: AddressFamily
) -> None:
    code = icmp_program(family, held)
    reply = 0 if family is V4 else 129
    heard = any(low <= identifier <= high for low, high in ranges(held))
    for kind in (reply, 3, 11, 1, 2):
        message = bytes((kind, 0, 0, 0)) + identifier.to_bytes(2, "big") + bytes(20)
        assert bool(run(code, packet(family, message))) == (kind != reply or heard)
