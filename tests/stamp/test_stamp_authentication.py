"""Key files, signatures, and the memory of what has been heard."""

import hmac
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathbudget.probes.errors import ConfigError
from pathbudget.probes.stamp.authentication import OVERTAKEN_NS, Key, ReplayWindow, read_keys

SECRET = bytes(range(32))


def key_file(folder: Path, text: str, mode: int = 0o600) -> Path:
    path = folder / "keys"
    path.write_text(text)
    path.chmod(mode)
    return path


def test_keys_by_their_names(tmp_path: Path) -> None:
    path = key_file(tmp_path, f"# ours\none {SECRET.hex()}\n\nother {'ab' * 16}  # old\n")
    keys = read_keys(path)
    assert list(keys) == ["one", "other"]
    assert keys["one"].sign(b"x") == hmac.digest(SECRET, b"x", "sha256")[:16]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no key in it"),
        ("one", "is no name and key"),
        ("one two three", "is no name and key"),
        ("o/e " + "ab" * 16, "is no name and key"),
        ("one " + "xy" * 16, "the key is no hexadecimal"),
        ("one " + "ab" * 15, "the key has 15 octets"),
        (f"one {'ab' * 16}\none {'cd' * 16}", "a second key one"),
    ],
)
def test_every_fault_of_a_key_file_is_told_and_no_key(
    tmp_path: Path, text: str, problem: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        read_keys(key_file(tmp_path, text))
    assert problem in str(caught.value)
    assert "abab" not in str(caught.value)
    assert "xyxy" not in str(caught.value)


def test_a_key_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="chmod 600"):
        read_keys(key_file(tmp_path, f"one {SECRET.hex()}", 0o640))


def test_a_key_file_that_is_not_there_or_no_text(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        read_keys(tmp_path / "none")
    path = key_file(tmp_path, "")
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="is no plain text"):
        read_keys(path)


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null", "/dev"])
def test_what_is_no_regular_file_is_not_read(device: str) -> None:
    with pytest.raises(ConfigError, match=r"is no regular file|Is a directory"):
        read_keys(device)


def test_nothing_waits_at_a_pipe_and_no_huge_file_is_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(ConfigError, match="is no regular file"):
        read_keys(tmp_path / "pipe")
    with key_file(tmp_path, "").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ConfigError, match="over 1048576 octets"):
        read_keys(Path(file.name))


def test_a_key_never_shows_itself() -> None:
    key = Key("one", SECRET)
    assert f"{key!r} {key} {[key]} { ({'k': key}) }".count(SECRET.hex()) == 0
    assert repr(key) == "Key('one')"
    assert not hasattr(key, "__dict__")
    with pytest.raises(ValueError, match="at least 16"):
        Key("short", b"123")


def test_a_window_hears_each_packet_once() -> None:
    window = ReplayWindow(0, 0)
    assert [window.admit(number, number) for number in (0, 1, 3, 2, 3, 2, 4)] == [
        False,
        True,
        True,
        True,
        False,
        False,
        True,
    ]


def test_what_was_overtaken_too_far_is_taken_for_a_replay() -> None:
    window = ReplayWindow(0, 0)
    assert window.admit(5_000, 5_000)
    assert not window.admit(5_000 - 1_024, 100)
    assert window.admit(5_000 - 1_023, 101)


def test_a_window_goes_on_when_the_numbers_wrap() -> None:
    window = ReplayWindow(2**32 - 2, 0)
    assert [window.admit(number, 1 + place) for place, number in enumerate((2**32 - 1, 0, 1))] == [
        True
    ] * 3
    assert not window.admit(2**32 - 1, 1)


def test_a_sender_whose_clock_was_set_back_a_little_is_still_heard() -> None:
    window = ReplayWindow(0, 1_000)
    assert window.admit(1, 2_000)
    assert window.admit(2, 1_500)


def test_before_a_session_there_is_a_second_and_before_one_that_began_again_nothing_heard() -> None:
    at = 10 * OVERTAKEN_NS
    window = ReplayWindow(5, at)
    assert [window.admit(6, at - OVERTAKEN_NS + after) for after in (-1, 0)] == [False, True]
    assert window.admit(7, at + 10)
    assert window.admit(5, at + 20)  # began again
    assert not window.admit(8, at + 10)
    assert window.admit(6, at + 11)  # left at once with it


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=60))
def test_no_packet_is_ever_heard_twice(packets: list[tuple[int, int]]) -> None:
    window = ReplayWindow(0, 0)
    heard = {(0, 0)}
    for packet in packets:
        if window.admit(*packet):
            assert packet not in heard
            heard.add(packet)
