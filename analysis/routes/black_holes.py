"""Large packets that vanish without a word (RFC 2923), told from loss and from an honest router.

What tells them apart, out of packets of several sizes sent over the same time:

    black hole    every large one since some moment was lost, small ones meanwhile were not, and no
                  router said that they are too big
    too big       a router said so (RFC 1191, RFC 8201): the path has its MTU, and says it
    loss          some of the large ones came through

Chance is judged moment by moment: only large packets count beside which (within `BESIDE_NS`) a
small one was answered, so that an outage of the whole path is no evidence, and several large ones
beside the same small one count once. The chance of each is what the path may lose at most: of small
packets, and of large ones as long as some of those came through.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from pathbudget.analysis.quantiles import loss_interval
from pathbudget.analysis.routes.model import PathSeries, Window
from pathbudget.analysis.routes.observations import series_of
from pathbudget.analysis.routes.sweeps import ROUND_TRIPS, is_lost
from pathbudget.probes.record import AddressFamily, Measurement, Sample

ALPHA = 0.001
"""Chance of taking plain loss for a black hole."""
FEWEST_MOMENTS = 5
"""With fewer nothing is decided, however little the path loses."""
BESIDE_NS = 5 * 10**9
HEADERS = {AddressFamily.IPV4: 28, AddressFamily.IPV6: 48}
"""IP header and the 8 octets of ICMP or UDP before the payload."""
_TOO_BIG = frozenset({(3, 4), (2, 0)})


class SizedPacket(NamedTuple):
    """One packet. `size`: octets from the IP header on. `mtu` and `responder`: who said too big."""

    sent_unix_ns: int
    size: int
    lost: bool
    too_big: bool = False
    mtu: int | None = None
    responder: str = ""


class SizeVerdict(StrEnum):
    """What becomes of large packets."""

    CLEAR = "clear"
    """The largest size that was tried comes through."""
    BLACK_HOLE = "black_hole"
    TOO_BIG = "too_big"
    LOSS = "loss"
    """Some of them come through: loss, whatever it has to do with their size."""
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class SizeFinding:
    """Of one series. `largest_passed` and `smallest_stopped` are sizes in octets from the IP header
    on, between which the limit lies; `began` the window in which it began, as sends tell it.
    `p_value`: chance that plain loss did it. `small_loss` is that of the sizes that pass.
    """

    verdict: SizeVerdict
    series: PathSeries
    began: Window | None
    largest_passed: int | None
    smallest_stopped: int | None
    moments: int
    """Large packets that were lost beside a small one that was answered."""
    small_loss: float
    p_value: float
    alpha: float
    mtu: int | None = None
    responder: str = ""
    reason: str = ""

    @property
    def confidence(self) -> float:
        """1 - p_value of a black hole."""
        return 1 - self.p_value


def black_holes(measurements: Iterable[Measurement], alpha: float = ALPHA) -> list[SizeFinding]:
    """The black holes among series that were probed with several sizes (`judge_sizes`).

    ICMP and STAMP probes of one vantage and address belong together, whatever their sizes.
    """
    packets: dict[PathSeries, list[SizedPacket]] = {}
    for measurement in measurements:
        size = size_of(measurement)
        if size is None:
            continue
        found = packets.setdefault(series_of(measurement), [])
        found += [one for sample in measurement.samples if (one := _sized(sample, size))]
    verdicts = (judge_sizes(series, found, alpha) for series, found in packets.items())
    return [one for one in verdicts if one.verdict is SizeVerdict.BLACK_HOLE]


def size_of(measurement: Measurement) -> int | None:
    """Octets of its packets from the IP header on, where options say; None elsewhere."""
    payload = measurement.options.get("payload_bytes", measurement.options.get("size"))
    if not isinstance(payload, int) or measurement.probe not in ("icmp", "stamp"):
        return None
    return payload + HEADERS[measurement.family or AddressFamily.IPV4]


def judge_sizes(
    series: PathSeries, packets: Iterable[SizedPacket], alpha: float = ALPHA
) -> SizeFinding:
    """What becomes of the large packets of one series now, at the end of `packets`."""
    ordered = sorted(packets)
    sizes = sorted({one.size for one in ordered})
    found = [_judge(series, ordered, size, alpha) for size in sizes[1:]]
    for wanted in (SizeVerdict.TOO_BIG, SizeVerdict.BLACK_HOLE, SizeVerdict.UNDECIDED):
        alike = [one for one in found if one.verdict is wanted]
        if alike:  # of smaller sizes the large ones among them speak, less often
            return max(alike, key=lambda one: one.moments)
    if not found:
        return _nothing(series, alpha, "fewer than two sizes")
    return found[-1]


def _judge(
    series: PathSeries, ordered: Sequence[SizedPacket], size: int, alpha: float
) -> SizeFinding:
    """Whether packets of `size` and more have stopped coming through, and smaller ones have not."""
    large = [one for one in ordered if one.size >= size]
    small = [one for one in ordered if one.size < size]
    passed = [place for place, one in enumerate(large) if not one.lost and not one.too_big]
    before, since = _split(large, passed[-1] + 1 if passed else 0)
    said = next((one for one in reversed(since) if one.too_big), None)
    if not since or (before and len(since) < FEWEST_MOMENTS and said is None):
        verdict = SizeVerdict.LOSS if any(one.lost for one in large) else SizeVerdict.CLEAR
        return _found(series, alpha, verdict, small)
    answered = [one for one in small if not one.lost and not one.too_big]
    moments = _moments(since, [one.sent_unix_ns for one in answered])
    chance = max(_loss_at_most(small), _loss_at_most(before) if before else 0.0)
    p_value = chance**moments
    sure = moments >= FEWEST_MOMENTS and p_value <= alpha
    first = since[0].sent_unix_ns
    meanwhile = [one.size for one in answered if one.sent_unix_ns >= first - BESIDE_NS]
    verdict = SizeVerdict.BLACK_HOLE if sure else SizeVerdict.UNDECIDED
    return replace(
        _found(series, alpha, verdict if said is None else SizeVerdict.TOO_BIG, small),
        began=Window(before[-1].sent_unix_ns if before else first, first),
        largest_passed=max(meanwhile, default=None),
        smallest_stopped=size,
        moments=moments,
        p_value=p_value,
        mtu=None if said is None else said.mtu,
        responder="" if said is None else said.responder,
        reason="" if sure or said is not None else _too_few(moments, p_value),
    )


def _too_few(moments: int, p_value: float) -> str:
    return (
        f"large packets lost beside small ones that were not: {moments}; "
        f"by plain loss alone with a chance of {p_value:.2g}"
    )


def _split(
    large: Sequence[SizedPacket], end: int
) -> tuple[Sequence[SizedPacket], Sequence[SizedPacket]]:
    """Up to the last one that came through, and those after it."""
    return large[:end], large[end:]


def _loss_at_most(packets: Sequence[SizedPacket]) -> float:
    """Upper end of what they lose. Of large ones too: some paths lose more of those."""
    return loss_interval(sum(one.lost for one in packets), len(packets), 0.98)[1]


def _found(
    series: PathSeries, alpha: float, verdict: SizeVerdict, small: Sequence[SizedPacket]
) -> SizeFinding:
    loss = sum(one.lost for one in small) / len(small) if small else 0.0
    return replace(_nothing(series, alpha, ""), verdict=verdict, small_loss=loss)


def _nothing(series: PathSeries, alpha: float, reason: str) -> SizeFinding:
    verdict = SizeVerdict.UNDECIDED
    return SizeFinding(verdict, series, None, None, None, 0, 0.0, 1.0, alpha, reason=reason)


def _moments(large: Sequence[SizedPacket], answered: Sequence[int]) -> int:
    """Large packets that were lost with an answered small one beside them, each of which counts
    once.
    """
    count, place = 0, 0
    for one in large:
        while place < len(answered) and answered[place] < one.sent_unix_ns - BESIDE_NS:
            place += 1
        if place < len(answered) and answered[place] <= one.sent_unix_ns + BESIDE_NS:
            count, place = count + 1, place + 1
    return count


def _sized(sample: Sample, size: int) -> SizedPacket | None:
    lost = is_lost(sample) if sample.metric in ROUND_TRIPS else None
    if lost is None:
        return None
    failure = sample.failure
    words = None if failure is None else (failure.icmp_type, failure.icmp_code)
    too_big = words in _TOO_BIG
    return SizedPacket(
        sample.sent_unix_ns, size, lost and not too_big, too_big, None, sample.responder or ""
    )
