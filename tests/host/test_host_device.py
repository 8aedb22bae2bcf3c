"""Network devices: which one a packet leaves through, and what it does to packets."""

import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathbudget.probes.host_cpu import virtual_machine
from pathbudget.probes.host_device import Device, longest_coalescing_us, read_device, read_devices
from pathbudget.probes.host_route import egress_device, read_route_answer, route_question


def test_the_way_to_ourselves_is_the_loopback_device() -> None:
    assert egress_device("127.0.0.1") == "lo"
    assert [device.name for device in read_devices(["127.0.0.1", "127.0.0.2"])] == ["lo"]


@pytest.mark.parametrize("address", ["", "not an address", "256.1.1.1"])
def test_no_way_to_what_is_no_address(address: str) -> None:
    assert egress_device(address) == ""


def test_the_loopback_device_holds_nothing_back() -> None:
    device = read_device("lo")
    assert device.hold_ns is None or device.hold_ns == 0
    assert device.hardware_stamps in {False, None}


@pytest.mark.parametrize("name", ["no-such-device0", "a-name-that-is-much-too-long", ""])
def test_a_device_that_is_not_there(name: str) -> None:
    assert read_device(name) == Device(name)


def coalesce(**words: int) -> tuple[int, ...]:
    places = {"rx_usecs": 1, "adaptive": 10, "rx_usecs_low": 13, "rx_usecs_high": 18}
    found = [0x0E] + [0] * 22
    for word, value in words.items():
        found[places[word]] = value
    return tuple(found)


def test_the_longest_time_to_an_interrupt() -> None:
    assert longest_coalescing_us(None) is None
    assert longest_coalescing_us(coalesce(rx_usecs=8, rx_usecs_high=256)) == 8
    assert longest_coalescing_us(coalesce(rx_usecs=8, adaptive=1, rx_usecs_high=256)) == 256
    assert longest_coalescing_us(coalesce(rx_usecs=40, adaptive=1)) == 40


def test_held_back_is_coalescing_and_the_time_to_join_packets() -> None:
    assert Device("a").hold_ns is None
    assert Device("a", flush_ns=0).hold_ns is None
    assert Device("a", coalescing_ns=8_000, flush_ns=20_000).hold_ns == 28_000


def test_a_question_to_the_routing_table() -> None:
    question = route_question(bytes([192, 0, 2, 1]))
    assert struct.unpack_from("=I", question)[0] == len(question) == 16 + 12 + 8
    assert len(route_question(bytes(16))) == 16 + 12 + 20


@settings(max_examples=50)
@given(st.binary(max_size=120))
def test_garbage_of_the_routing_table(data: bytes) -> None:
    answer = struct.pack("=IHHII", 16 + 12 + len(data), 24, 0, 1, 0) + bytes(12) + data
    for one in (data, answer):
        found = read_route_answer(one)
        assert found is None or 0 <= found < 2**32


def test_the_device_in_an_answer_of_the_routing_table() -> None:
    table = struct.pack("=HHI", 8, 15, 254)
    device = struct.pack("=HHI", 8, 4, 7)
    for attributes, index in ((table + device, 7), (table, None)):
        head = struct.pack("=IHHII", 28 + len(attributes), 24, 0, 1, 0)
        assert read_route_answer(head + bytes(12) + attributes) == index


def test_hints_of_a_virtual_machine(tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    (tmp_path / "1/cgroup").write_text("0::/docker/4f1c\n")
    assert virtual_machine(tmp_path, tmp_path) == "container"
