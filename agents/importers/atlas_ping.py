"""``ping`` results as measurements of the probe ``icmp``: one sample for each packet.

The platform gives one time for the whole result, in whole seconds, taken when it ended; the packets
left before it, an unknown interval apart. All of them get that time, in their order.

An answer marked ``dup`` is one too many, or one to an earlier packet that came late; the firmware
does not tell them apart, and neither is a sample.
"""

from collections.abc import Sequence

from pathbudget.agents.importers.atlas_failures import (
    BAD_NUMBER,
    NO_ADDRESS,
    NO_MEANING,
    NO_RECORD,
    TIMEOUT,
    failure_of,
)
from pathbudget.agents.importers.atlas_labels import Labels
from pathbudget.agents.importers.atlas_wire import (
    LONGEST_RTT,
    NO_RTT,
    SECOND,
    Ping,
    PingReply,
    address_of,
    family_of,
    name_of,
    nanoseconds,
)
from pathbudget.agents.importers.import_report import ImportReport
from pathbudget.probes.record import (
    SCHEMA_VERSION,
    ClockSource,
    Failure,
    Measurement,
    Metric,
    Sample,
    Stage,
)

PROBE = "icmp"
_RTT = Metric.RTT.value
_FOREIGN = ClockSource.FOREIGN
_NOTHING: dict[str, str | int | float | bool | None] = {}
_MOST_PACKETS = 1024
"""More than a ping may send; a larger total is not believed."""


def read_pings(pings: Sequence[Ping], labels: Labels, report: ImportReport) -> list[Measurement]:
    """Measurements of `pings`, in order.

    Three answers to three packets is what nearly every result is. That case is written out here
    without a call or a loop, at twice the speed of `_read_ping` and to the same effect.
    """
    measurements: list[Measurement] = []
    add = measurements.append
    schedules, software, clocks = labels.schedule, labels.software, labels.clock
    plain, msm, address, name, af = 0, -1, None, None, None
    campaign, family, target = "", None, labels.target["", "", None]
    sources = labels.source[campaign, family]
    for ping in pings:
        replies = ping.result
        if not len(replies) == 3 == ping.rcvd == ping.sent:
            measurements += _read_ping(ping, labels, report)
            continue
        first, second, third = replies
        rtt1, rtt2, rtt3 = first.rtt, second.rtt, third.rtt
        if (
            not (rtt1 >= 0 <= rtt2 and rtt3 >= 0)
            or rtt1 + rtt2 + rtt3 > LONGEST_RTT
            or first.dup or second.dup or third.dup
            or first.ttl or second.ttl or third.ttl
            or first.late or second.late or third.late
        ):  # fmt: skip
            measurements += _read_ping(ping, labels, report)
            continue
        if ping.dst_addr != address or ping.msm_id != msm or ping.dst_name != name or ping.af != af:
            msm, address, name, af = ping.msm_id, ping.dst_addr, ping.dst_name, ping.af
            campaign, family = labels.campaign[msm], family_of(ping)
            target = labels.target[name_of(ping), address_of(ping), None]
            sources = labels.source[campaign, family]
        vantage, name_of_run = sources[ping.prb_id]
        timestamp, ttl = ping.timestamp, ping.ttl or None
        sent = timestamp * SECOND
        ns1, ns2, ns3 = round(rtt1 * 1e6), round(rtt2 * 1e6), round(rtt3 * 1e6)
        plain += 1
        add(
            Measurement(
                f"{name_of_run}{timestamp}-{ns1 + ns2 + ns3:x}",
                vantage,
                target,
                PROBE,
                sent,
                (
                    Sample(0, _RTT, sent, ns1, None, _FOREIGN, None, None, ttl),
                    Sample(1, _RTT, sent, ns2, None, _FOREIGN, None, None, ttl),
                    Sample(2, _RTT, sent, ns3, None, _FOREIGN, None, None, ttl),
                ),
                SCHEMA_VERSION,
                campaign,
                1,
                address or "",
                family,
                0,
                _NOTHING,
                schedules[ping.step],
                labels.file,
                software[ping.fw],
                clocks[ping.lts],
            )
        )
    report.measurements += plain
    report.types["ping"] += plain
    report.samples += 3 * plain
    return measurements


def _read_ping(ping: Ping, labels: Labels, report: ImportReport) -> list[Measurement]:
    """The measurement of one result of any form; none when it has nothing to import."""
    counters: dict[str, int] = {}
    if ping.result:
        samples = _samples(ping, ping.result, counters)
    elif message := ping.error or ping.dnserr:
        samples = (failed(0, ping.timestamp * SECOND, failure_of(message, Stage.SEND)),)
    else:
        samples = () if address_of(ping) else (failed(0, ping.timestamp * SECOND, NO_ADDRESS),)
    if not samples:
        report.left_out["ping without a packet"] += 1
        return []
    report.inconsistent += bool(ping.result) and _disagrees(ping, samples)
    report.late += counters.get("late", 0)
    report.duplicates += counters.get("duplicate", 0)
    report.count("ping", samples)
    return [labels.measurement(ping, PROBE, samples, counters=counters)]


def _samples(
    ping: Ping, replies: Sequence[PingReply], counters: dict[str, int]
) -> tuple[Sample, ...]:
    """A sample for each packet; what is no packet of its own goes into `counters`."""
    sent = ping.timestamp * SECOND
    samples: list[Sample] = []
    for reply, ttl in zip(replies, _ttls(ping, replies), strict=True):
        if reply.late or reply.dup:
            word = "late" if reply.late else "duplicate"
            counters[word] = counters.get(word, 0) + 1
        else:
            samples.append(_sample(len(samples), sent, reply, ttl))
    if not any(reply.error for reply in replies):
        samples += [
            failed(seq, sent, NO_RECORD)
            for seq in range(len(samples), min(ping.sent or 0, _MOST_PACKETS))
        ]
    return tuple(samples)


def _sample(seq: int, sent: int, reply: PingReply, ttl: int | None) -> Sample:
    if reply.error:
        return failed(seq, sent, failure_of(reply.error, Stage.SEND))
    if reply.rtt == NO_RTT:
        return failed(seq, sent, TIMEOUT if reply.x else NO_MEANING)
    if (value := nanoseconds(reply.rtt)) is None:
        return failed(seq, sent, BAD_NUMBER)
    return Sample(seq, _RTT, sent, value, clock_source=_FOREIGN, ttl=ttl)


def failed(seq: int, sent: int, failure: Failure) -> Sample:
    """A packet without a round trip."""
    return Sample(seq, _RTT, sent, failure=failure, clock_source=_FOREIGN)


def _ttls(ping: Ping, replies: Sequence[PingReply]) -> list[int | None]:
    """Time to live of each answer.

    The documents say that a reply gives its own where it differs from the first one, the firmware
    gives it where it differs from the one before, and then the result has the last one. Where the
    result has the last one, answers before the first change are unknown.
    """
    own = [reply.ttl for reply in replies if reply.ttl]
    common = ping.ttl or None
    running = None if own and own[-1] == common else common
    ttls: list[int | None] = []
    for reply in replies:
        if reply.ttl and own[-1] == common:
            running = reply.ttl
        ttls.append(reply.ttl or running)
    return ttls


def _disagrees(ping: Ping, samples: Sequence[Sample]) -> bool:
    """Whether the result's own totals differ from its packets."""
    answered = sum(sample.failure is None for sample in samples)
    return (ping.sent is not None and ping.sent != len(samples)) or (
        ping.rcvd is not None and ping.rcvd != answered
    )
