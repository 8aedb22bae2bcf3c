"""Keys, signatures, and who has been heard before.

A key file has one key a line, ``ID HEX``: a name of letters, digits, ``-`` and ``_``, and at least
16 octets in hexadecimal. ``#`` begins a comment. Nobody but its owner may read it. No text of this
module shows a key, whatever goes wrong.
"""

import hmac
import os
import re
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

from pathbudget.probes.errors import ConfigError, Fault
from pathbudget.probes.stamp.wire import HMAC_OCTETS, SEQUENCES, SIGNED_OCTETS

MIN_KEY_OCTETS = 16
OVERTAKEN_NS = 1_000_000_000
"""How long before the first packet of a session another one of it may have been sent. Packets that
leave at once bear times in any order, as only chance tells them apart, and the first to leave need
not be the first to come.
"""
WINDOW = 1024
"""How far a packet may be overtaken and still be answered."""
MOST_OCTETS = 1 << 20
"""Of a key file."""
_EXPECTED = "a key file: one line ID HEX per key"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MADE_BY = "python3 -c 'import secrets; print(secrets.token_hex(32))'"


class Key:
    """One shared secret. Its text form is its name."""

    __slots__ = ("_keyed", "name")

    def __init__(self, name: str, secret: bytes) -> None:
        if len(secret) < MIN_KEY_OCTETS:
            raise ValueError(f"a key needs at least {MIN_KEY_OCTETS} octets")
        self.name = name
        self._keyed = hmac.new(secret, None, "sha256")

    def __repr__(self) -> str:
        return f"Key({self.name!r})"

    def sign(self, message: bytes) -> bytes:
        """HMAC-SHA-256, cut to 128 bits (RFC 8762 section 4.4)."""
        keyed = self._keyed.copy()
        keyed.update(message)
        return keyed.digest()[:HMAC_OCTETS]

    def verify(self, message: bytes, signature: bytes) -> bool:
        """Whether the signature is that of the message; in constant time."""
        return hmac.compare_digest(self.sign(message), signature)

    def signed_base(self, payload: bytes) -> bool:
        """Whether the base packet carries our signature over its first 96 octets."""
        return self.verify(
            payload[:SIGNED_OCTETS], payload[SIGNED_OCTETS : SIGNED_OCTETS + HMAC_OCTETS]
        )


def read_keys(path: str | Path) -> dict[str, Key]:
    """The keys of a file, by name.

    Raises:
        ConfigError: with every fault of the file, and no key in its text.
    """
    faults: list[Fault] = []
    lines = _lines(str(path), faults)
    if faults:
        raise ConfigError(faults)
    keys = _keys(str(path), lines, faults)
    if not keys and not faults:
        faults.append(Fault(str(path), "", "no key in it", f"a line ID HEX; {_MADE_BY}"))
    if faults:
        raise ConfigError(faults)
    return keys


def _lines(path: str, faults: list[Fault]) -> Sequence[str]:
    """The lines of a small file that is its owner's alone; nothing of any other is read."""
    try:
        # Not to hang at a pipe that nobody writes to.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:  # noqa: PTH123
            state = os.fstat(descriptor)
            if not stat.S_ISREG(state.st_mode):
                faults.append(Fault(path, "", "is no regular file", _EXPECTED))
            elif state.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                faults.append(Fault(path, "", "others can read it", f"mode 600: chmod 600 {path}"))
            else:
                content = file.read(MOST_OCTETS + 1)
                if len(content) <= MOST_OCTETS:
                    return content.decode("ascii").splitlines()
                faults.append(Fault(path, "", f"over {MOST_OCTETS} octets", _EXPECTED))
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "is no plain text"
        faults.append(Fault(path, "", why or "cannot be read", _EXPECTED))
    return ()


def _keys(path: str, lines: Iterable[str], faults: list[Fault]) -> dict[str, Key]:
    keys: dict[str, Key] = {}
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        fault = _fault(words, keys)
        if fault is None:
            keys[words[0]] = Key(words[0], bytes.fromhex(words[1]))
        else:
            faults.append(Fault(path, f"line {number}", *fault))
    return keys


def _fault(words: list[str], keys: dict[str, Key]) -> tuple[str, str] | None:
    """What is wrong with a line, never quoting it."""
    if len(words) != 2 or _NAME.fullmatch(words[0]) is None:
        return "is no name and key", "ID HEX, the name of letters, digits, - and _"
    if words[0] in keys:
        return f"a second key {words[0]}", "each name once"
    try:
        octets = len(bytes.fromhex(words[1]))
    except ValueError:
        return "the key is no hexadecimal", _MADE_BY
    if octets < MIN_KEY_OCTETS:
        return f"the key has {octets} octets", f"{MIN_KEY_OCTETS} or more: {_MADE_BY}"
    return None


class ReplayWindow:
    """The authenticated packets of one session that have been heard (as RFC 4303 section 3.4.3).

    A packet is new when its timestamp is later than all before. One that is not may have been
    overtaken on its way: then its sequence number has not been heard, lies at most `WINDOW` behind,
    and its timestamp is earlier than the session by no more than `OVERTAKEN_NS`. The timestamp
    alone would refuse what was overtaken, the number alone a sender that began again at zero.
    Timestamps are Unix nanoseconds. Of what was sent right before a session only `gate.Gate` knows.
    """

    __slots__ = ("_floor_ns", "_heard", "_highest", "_latest_ns")

    def __init__(self, sequence: int, timestamp_ns: int) -> None:
        self._highest = sequence
        self._heard = 1
        self._latest_ns = timestamp_ns
        self._floor_ns = timestamp_ns - OVERTAKEN_NS

    def admit(self, sequence: int, timestamp_ns: int) -> bool:
        """Whether this packet is heard for the first time; then it is remembered."""
        ahead = (sequence - self._highest + SEQUENCES // 2) % SEQUENCES - SEQUENCES // 2
        later = timestamp_ns > self._latest_ns
        if not later and (timestamp_ns < self._floor_ns or not self._unheard(ahead)):
            return False
        before_ns = self._latest_ns
        if later:
            self._latest_ns = timestamp_ns
        if ahead > 0:
            self._heard = (self._heard << min(ahead, WINDOW) | 1) & (1 << WINDOW) - 1
            self._highest = sequence
        elif self._unheard(ahead):
            self._heard |= 1 << -ahead
        else:  # a later packet with an old number: the sender began again
            self._heard = 1
            self._highest = sequence
            self._floor_ns = max(timestamp_ns - OVERTAKEN_NS, before_ns + 1)
        return True

    def _unheard(self, ahead: int) -> bool:
        return ahead > 0 or (-ahead < WINDOW and not self._heard >> -ahead & 1)
