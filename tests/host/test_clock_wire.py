"""What chronyd, ntpd and ptp4l say, from bytes that they sent."""

import importlib.util
import struct
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathbudget.probes import chrony_wire, ntp_control_wire, ptp_management_wire
from pathbudget.probes.chrony_wire import chrony_float, read_tracking, tracking_request
from pathbudget.probes.clock_statement import UNSYNCHRONISED, ClockStatement, root_distance
from pathbudget.probes.ntp_control_wire import read_variables, read_variables_request
from pathbudget.probes.ptp_management_wire import accuracy_of, get_request, read_answer, read_state

SEQUENCE = 0xDEADBEEF
Recorded = dict[str, list[bytes]]


def load_targets() -> ModuleType:
    file = Path(__file__).with_name("fuzz_targets.py")
    spec = importlib.util.spec_from_file_location("host_fuzz_targets", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TARGETS = load_targets()


def test_chrony_says_what_chronyc_shows(recorded: Recorded) -> None:
    found = read_tracking(recorded["chrony"][0], SEQUENCE)
    assert found is not None
    assert found.synchronised
    # 620 ns of system time, half of 8188 ns of root delay, 1842 ns of root dispersion
    assert found.bound_ns == pytest.approx(620 + 8188 / 2 + 1842, abs=30)
    assert found.estimated_ns == pytest.approx(620 + 90, abs=2)
    assert found.skew_ppm == pytest.approx(0.015, abs=0.0006)


def test_a_request_to_chrony_is_as_long_as_the_reply(recorded: Recorded) -> None:
    request = tracking_request(SEQUENCE)
    assert len(request) == len(recorded["chrony"][0]) == 104
    assert request[:12].hex() == "0601000000210000deadbeef"


@pytest.mark.parametrize("name", ["chrony_local", "chrony_unsynchronised"])
def test_a_chrony_without_a_source_states_no_error(recorded: Recorded, name: str) -> None:
    """Its own `local` clock has a root dispersion of 0, which would be an error of nothing."""
    assert read_tracking(recorded[name][0], SEQUENCE) == UNSYNCHRONISED


def test_a_reply_of_chrony_to_somebody_else_is_none(recorded: Recorded) -> None:
    assert read_tracking(recorded["chrony"][0], SEQUENCE - 1) is None


@pytest.mark.parametrize(
    ("word", "value"),
    [
        (0, 0.0),
        (1 << 25 | 1 << 23, 0.5),  # 2^23 x 2^(1 - 25)
        (0x04800000, 1.0),  # as in the recorded reply of an unsynchronised chronyd
        (0x7E << 25 | 0x1FFFFFF, -(2.0**-27)),
        (0x3F << 25 | 0xFFFFFF, 0xFFFFFF * 2.0**38),
        (0x40 << 25 | 1 << 24, -(2.0**24) * 2.0**-89),
    ],
)
def test_the_floats_of_chrony(word: int, value: float) -> None:
    assert chrony_float(word) == value


def test_ntpsec_says_what_ntpq_shows(recorded: Recorded) -> None:
    found = read_variables(recorded["ntpsec"][0], 7)
    assert found is not None
    assert found.synchronised
    assert found.bound_ns == pytest.approx(2_480 + 13_000 + 1_465_000, abs=1)  # milliseconds there
    assert found.estimated_ns == pytest.approx(2_480, abs=1)
    assert found.skew_ppm == 0.013159


def test_an_ntpd_without_a_source_states_no_error(recorded: Recorded) -> None:
    assert read_variables(recorded["ntpsec_unsynchronised"][0], 7) == UNSYNCHRONISED
    local = recorded["ntpsec"][0].replace(b"refid=10.9.9.1", b"refid=LOCAL(0)")
    assert read_variables(local, 7) == UNSYNCHRONISED


def test_a_refusal_of_ntpd_is_none(recorded: Recorded) -> None:
    assert read_variables(recorded["ntpsec_refusal"][0], 7) is None
    assert read_variables(recorded["ntpsec"][0], 8) is None


def test_a_part_of_an_answer_of_ntpd_is_none(recorded: Recorded) -> None:
    reply = recorded["ntpsec"][0]
    more = reply[:1] + bytes([reply[1] | ntp_control_wire.MORE]) + reply[2:]
    later = reply[:8] + b"\0\x04" + reply[10:]
    missing = reply.replace(b"rootdisp", b"rootdosp")
    assert [read_variables(one, 7) for one in (more, later, missing)] == [None] * 3


def test_a_request_to_ntpd_names_what_is_needed() -> None:
    request = read_variables_request(7)
    assert (
        request[:12].hex()
        == "1602000700000000000000" + f"{len(','.join(ntp_control_wire.VARIABLES)):02x}"
    )
    assert len(request) % 4 == 0


def read_ptp(messages: list[bytes], *, bounded: bool = True) -> ClockStatement | None:
    answers = [read_answer(message, 0x5151) for message in messages]
    data = {answer.question: answer.data for answer in answers if answer is not None}
    return read_state(data, bounded=bounded)


def test_ptp4l_says_what_pmc_shows(recorded: Recorded) -> None:
    found = read_ptp(recorded["ptp4l"])
    assert found == ClockStatement(synchronised=True, bound_ns=235 + 2780 + 250, estimated_ns=235)


def test_without_a_traceable_grandmaster_there_is_no_bound(recorded: Recorded) -> None:
    found = read_ptp(recorded["ptp4l_untraceable"])
    assert found == ClockStatement(synchronised=True, bound_ns=None, estimated_ns=932)


def test_the_clock_of_a_network_card_is_not_the_wall_clock(recorded: Recorded) -> None:
    found = read_ptp(recorded["ptp4l"], bounded=False)
    assert found == ClockStatement(synchronised=True, bound_ns=None, estimated_ns=235)


def test_ptp_time_of_unknown_distance_to_utc_has_no_bound(recorded: Recorded) -> None:
    current, parent, properties, status = recorded["ptp4l"]
    for flags, bounded in ((0x08, False), (0x0C, True)):
        changed = properties[:56] + bytes([flags]) + properties[57:]
        found = read_ptp([current, parent, changed, status])
        assert found is not None
        assert (found.bound_ns is not None) is bounded


def test_a_grandmaster_follows_nobody(recorded: Recorded) -> None:
    assert read_ptp(recorded["ptp4l_grandmaster"]) == UNSYNCHRONISED


def test_an_answer_of_ptp4l_to_somebody_else_is_none(recorded: Recorded) -> None:
    assert read_answer(recorded["ptp4l"][0], 0x5152) is None
    assert read_ptp(recorded["ptp4l"][:3]) is None


def test_a_request_to_ptp4l() -> None:
    request = get_request(ptp_management_wire.CURRENT_DATA_SET, 24, 0x5151, 3)
    assert len(request) == struct.unpack_from(">H", request, 2)[0] == 54
    assert (request[0], request[1], request[4]) == (0x0D, 2, 24)
    assert read_answer(request, 0xFFFF) is None  # a question is no answer


@pytest.mark.parametrize(
    ("code", "ns"),
    [(0x17, 1), (0x1D, 1), (0x1E, 3), (0x20, 25), (0x22, 250), (0x23, 1_000), (0x2F, 10**9)],
)
def test_the_accuracy_of_a_grandmaster(code: int, ns: int) -> None:
    assert accuracy_of(code) == ns


@pytest.mark.parametrize("code", [0, 0x16, 0x30, 0x31, 0xFE, 0xFF])
def test_an_unknown_accuracy(code: int) -> None:
    assert accuracy_of(code) is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"offset": float("nan")},
        {"delay": float("inf")},
        {"dispersion": -1e-9},
        {"spread": -1.0},
        {"skew_ppm": 1e12},
        {"offset": -1e10},
    ],
)
def test_numbers_that_cannot_be_are_no_statement(wrong: dict[str, float]) -> None:
    good = {"offset": -0.5, "delay": 0.2, "dispersion": 0.1, "spread": 0.0, "skew_ppm": 1.0}
    found = root_distance(**good)
    assert found is not None
    assert found.bound_ns == 700_000_000
    assert root_distance(**{**good, **wrong}) is None


def test_a_cut_reply_is_no_statement(recorded: Recorded) -> None:
    for length in range(104):
        assert read_tracking(recorded["chrony"][0][:length], SEQUENCE) is None
    whole = 12 + 0x6D
    for length in range(whole):
        assert read_variables(recorded["ntpsec"][0][:length], 7) is None


@settings(max_examples=50)
@given(st.binary(max_size=300))
def test_garbage_never_raises(data: bytes) -> None:
    TARGETS.fuzz_one_chrony(data)
    TARGETS.fuzz_one_ntp_control(data)
    TARGETS.fuzz_one_ptp(data)


@settings(max_examples=50)
@given(st.data())
def test_damaged_replies_never_raise(recorded: Recorded, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(recorded)))
    message = bytearray(data.draw(st.sampled_from(recorded[name])))
    for _ in range(data.draw(st.integers(1, 4))):
        message[data.draw(st.integers(0, len(message) - 1))] = data.draw(st.integers(0, 255))
    TARGETS.is_sound(read_tracking(bytes(message), SEQUENCE))
    TARGETS.is_sound(read_variables(bytes(message), 7))
    TARGETS.is_sound(read_ptp([bytes(message), *recorded["ptp4l"]]))


@settings(max_examples=50)
@given(st.text(alphabet="rootdelayisp=,-+.e0123456789naif _jtckw", max_size=200))
def test_any_text_of_ntpd(text: str) -> None:
    TARGETS.fuzz_one_ntp_control(text.encode())


def test_the_sequence_travels(recorded: Recorded) -> None:
    assert chrony_wire.REPLY_BYTES == 104
    for sequence in (0, 1, 2**32 - 1):
        assert tracking_request(sequence)[8:12] == struct.pack(">I", sequence)
