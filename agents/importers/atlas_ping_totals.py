"""``ping`` results of the oldest firmware: only minimum, mean and maximum, no single packet.

Of at most three packets the totals tell every round trip, though not their order: the lowest, the
highest, and what is left of three times the mean (to 1.5 us, the mean has three decimals). These
samples carry the flag ``reconstructed``. Nothing is taken from a longer ping, not even where it
lost so much that it could be: what was kept would then have too many losses.
"""

from pathbudget.agents.importers.atlas_failures import NO_ADDRESS, TIMEOUT, failure_of
from pathbudget.agents.importers.atlas_labels import Labels
from pathbudget.agents.importers.atlas_ping import PROBE, failed
from pathbudget.agents.importers.atlas_wire import SECOND, PingTotals, address_of, nanoseconds
from pathbudget.agents.importers.import_report import ImportReport
from pathbudget.probes.record import ClockSource, Flag, Measurement, Metric, Sample, Stage

MOST_PACKETS = 3
_ROUNDING_NS = 1_000
"""How far a mean with three decimals in milliseconds may be off, and a bit."""
_FLAGS = (Flag.RECONSTRUCTED.value,)


class UnreadableError(ValueError):
    """A result contradicts itself; the message says how."""


def read_totals(ping: PingTotals, labels: Labels, report: ImportReport) -> Measurement | None:
    """The measurement of one result; None when its packets do not follow from the totals.

    Raises UnreadableError when the totals contradict each other.
    """
    samples = _samples(ping)
    if not samples:
        report.left_out["ping with only minimum, mean and maximum"] += 1
        return None
    report.reconstructed += sum(sample.flags == _FLAGS for sample in samples)
    report.count("ping", samples)
    return labels.measurement(ping, PROBE, samples)


def _samples(ping: PingTotals) -> tuple[Sample, ...]:
    time = ping.timestamp * SECOND
    if message := ping.error or ping.dnserr:
        return (failed(0, time, failure_of(message, Stage.SEND)),)
    if not 0 <= ping.rcvd <= ping.sent:
        raise UnreadableError(f"{ping.rcvd} answers to {ping.sent} packets")
    if ping.sent > MOST_PACKETS:
        return ()
    if ping.sent == 0:
        return () if address_of(ping) else (failed(0, time, NO_ADDRESS),)
    answers = tuple(
        Sample(
            seq=seq,
            metric=Metric.RTT,
            sent_unix_ns=time,
            value_ns=value,
            clock_source=ClockSource.FOREIGN,
            ttl=ping.ttl or None,
            flags=_FLAGS,
        )
        for seq, value in enumerate(_round_trips(ping))
    )
    return answers + tuple(failed(seq, time, TIMEOUT) for seq in range(ping.rcvd, ping.sent))


def _round_trips(ping: PingTotals) -> list[int]:
    """The `rcvd` round trips in ns, at most three, that have these totals."""
    if ping.rcvd == 0:
        return []
    low, mean, high = (nanoseconds(number) for number in (ping.min, ping.avg, ping.max))
    if low is None or mean is None or high is None:
        raise UnreadableError("answers without minimum, mean and maximum")
    middle = ping.rcvd * mean - low - high
    values = {1: [low], 2: [low, high], 3: [low, middle, high]}[ping.rcvd]
    slack = ping.rcvd * _ROUNDING_NS
    fits = abs(sum(values) - ping.rcvd * mean) <= slack and low <= high
    if not fits or (not low - slack <= middle <= high + slack and ping.rcvd == 3):
        raise UnreadableError("minimum, mean and maximum do not fit together")
    return sorted(min(max(value, low), high) for value in values)
