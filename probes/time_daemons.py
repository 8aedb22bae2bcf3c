"""Ask the daemons of this host how right its clock is: a datagram to each, and a short wait.

Only Unix sockets and loopback; nothing leaves the host. Everything that goes wrong (nobody there,
not allowed, no answer, garbage) is the same answer: None. Call it in a thread, not in an event
loop: it may take `ALL_SECONDS` where a daemon hangs, well under a millisecond where there is none.
"""

import contextlib
import secrets
import socket
import tempfile
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import NamedTuple

from pathbudget.probes import chrony_wire, ntp_control_wire, ptp_management_wire
from pathbudget.probes.clock_statement import ClockStatement

ALL_SECONDS = 0.2
ONE_SECONDS = 0.04
LONGEST_REPLY = 2_048
HARDWARE_CLOCKS = Path("/sys/class/ptp")
PTP_DOMAINS = (0, 24, 44)
"""The default, and those of the telecom profiles G.8275.1 and G.8275.2."""

Read = Callable[[bytes], ClockStatement | None]


class Places(NamedTuple):
    """Where the daemons listen."""

    chrony_socket: Path = Path("/run/chrony/chronyd.sock")
    chrony_port: int = 323
    ntp_port: int = 123
    ptp_sockets: tuple[Path, ...] = (Path("/run/ptp4lro"), Path("/run/ptp4l"))


HERE = Places()


class Deadline:
    """How long may still be waited."""

    def __init__(self, seconds: float = ALL_SECONDS) -> None:
        self._ends = time.monotonic() + seconds

    def remaining(self) -> float:
        """Seconds for one exchange; raises TimeoutError where none are left."""
        left = min(ONE_SECONDS, self._ends - time.monotonic())
        if left <= 0:
            raise TimeoutError
        return left


def ask_chrony(deadline: Deadline, places: Places = HERE) -> ClockStatement | None:
    """chronyd by its Unix socket, which works from any network namespace, else by UDP."""
    sequence = secrets.randbits(32)
    request = chrony_wire.tracking_request(sequence)

    def read(reply: bytes) -> ClockStatement | None:
        return chrony_wire.read_tracking(reply, sequence)

    # chronyd runs as a user of its own and, by its AppArmor profile, writes to its own folder only.
    folder = places.chrony_socket.parent
    with _quiet(), _unix_socket(places.chrony_socket, folder, deadline) as sock:
        if found := _exchange(sock, request, read, deadline):
            return found
    return _ask_loopback(places.chrony_port, request, read, deadline)


def ask_ntpd(deadline: Deadline, places: Places = HERE) -> ClockStatement | None:
    """ntpd or ntpsec, by a control message to the NTP port."""
    sequence = secrets.randbits(16)

    def read(reply: bytes) -> ClockStatement | None:
        return ntp_control_wire.read_variables(reply, sequence)

    request = ntp_control_wire.read_variables_request(sequence)
    return _ask_loopback(places.ntp_port, request, read, deadline)


def ask_ptp(
    deadline: Deadline, places: Places = HERE, hardware: Path = HARDWARE_CLOCKS
) -> ClockStatement | None:
    """ptp4l by its Unix sockets. Without a bound where the host has a clock in a network card:
    ptp4l then says how right that one is, and nobody how right the wall clock is beside it.
    """
    bounded = not _has_entries(hardware)
    for path in places.ptp_sockets:
        with (
            _quiet(),
            tempfile.TemporaryDirectory(prefix="pathbudget-") as folder,
            _unix_socket(path, Path(folder), deadline) as sock,
        ):
            answers = _ask_data_sets(sock, deadline)
            if found := ptp_management_wire.read_state(answers, bounded=bounded):
                return found
    return None


def _ask_data_sets(sock: socket.socket, deadline: Deadline) -> dict[int, bytes]:
    """All data sets of the first domain that has sent them all."""
    port = secrets.randbits(16)
    questions = ptp_management_wire.QUESTIONS
    for domain in PTP_DOMAINS:
        for sequence, question in enumerate(questions):
            sock.send(ptp_management_wire.get_request(question, domain, port, sequence))
    domains: dict[int, dict[int, bytes]] = {}
    with contextlib.suppress(OSError):
        while True:
            sock.settimeout(deadline.remaining())
            answer = ptp_management_wire.read_answer(sock.recv(LONGEST_REPLY), port)
            if answer is not None:
                sets = domains.setdefault(answer.domain, {})
                sets[answer.question] = answer.data
                if len(sets.keys() & set(questions)) == len(questions):
                    return sets
    return next(iter(domains.values()), {})


def _ask_loopback(
    port: int, request: bytes, read: Read, deadline: Deadline
) -> ClockStatement | None:
    for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        with _quiet(), socket.socket(family, socket.SOCK_DGRAM) as sock:
            sock.connect((address, port))
            if found := _exchange(sock, request, read, deadline):
                return found
    return None


def _exchange(
    sock: socket.socket, request: bytes, read: Read, deadline: Deadline
) -> ClockStatement | None:
    """Send, then wait for a reply that can be read; what else comes is passed over."""
    wait = deadline.remaining()
    ends = time.monotonic() + wait
    sock.settimeout(wait)
    sock.send(request)
    while (left := ends - time.monotonic()) > 0:
        sock.settimeout(left)
        if found := read(sock.recv(LONGEST_REPLY)):
            return found
    return None


@contextlib.contextmanager
def _unix_socket(path: Path, folder: Path, deadline: Deadline) -> Generator[socket.socket]:
    """A datagram socket connected to `path`, with a name of its own in `folder` to be answered at.

    The daemons answer to names only, and must be allowed to write there.
    """
    own = folder / f"pathbudget.{secrets.token_hex(8)}.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.settimeout(deadline.remaining())
        sock.connect(str(path))
        sock.bind(str(own))
        try:
            own.chmod(0o666)
            yield sock
        finally:
            own.unlink(missing_ok=True)


def _has_entries(folder: Path) -> bool:
    with contextlib.suppress(OSError):
        return any(folder.iterdir())
    return False


def _quiet() -> contextlib.suppress:
    """Nobody there, not allowed, too late: all of them OSError."""
    return contextlib.suppress(OSError)
