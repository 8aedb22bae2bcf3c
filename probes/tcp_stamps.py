"""The stamps of a sample whose ends were read in user space and perhaps by the kernel."""

from pathbudget.probes.carriers import Moment
from pathbudget.probes.clock import Reading
from pathbudget.probes.contract import Shot
from pathbudget.probes.record import Stamps


def stamps_of(
    shot: Shot,
    sent_unix_ns: int,
    sent: Reading,
    received: Reading | None = None,
    kernel_sent_unix_ns: int | None = None,
    kernel_received_unix_ns: int | None = None,
) -> Stamps:
    """All of them as offsets from `sent_unix_ns`; what lies between two readings is monotonic."""
    user_sent = sent.unix_ns - sent_unix_ns
    return Stamps(
        due_ns=None if shot.due_ns is None else user_sent + shot.due_ns - sent.monotonic_ns,
        user_sent_ns=user_sent,
        kernel_sent_ns=_offset(kernel_sent_unix_ns, sent_unix_ns),
        kernel_received_ns=_offset(kernel_received_unix_ns, sent_unix_ns),
        user_received_ns=None
        if received is None
        else user_sent + received.monotonic_ns - sent.monotonic_ns,
    )


def stamps_between(shot: Shot, first: Moment, last: Moment) -> Stamps:
    """What every clock saw of a number that lies between two moments."""
    return stamps_of(
        shot,
        first.unix_ns,
        first.reading,
        last.reading,
        first.kernel_unix_ns,
        last.kernel_unix_ns,
    )


def lateness_of(shot: Shot, sent: Reading) -> int:
    """How long after its due time the probe left; what the runner says where it gives no time."""
    return shot.lateness_ns if shot.due_ns is None else sent.monotonic_ns - shot.due_ns


def _offset(unix_ns: int | None, sent_unix_ns: int) -> int | None:
    return None if unix_ns is None else unix_ns - sent_unix_ns
