"""Simulated paths between two clocks, with the truth beside them."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pathbudget.analysis.packets import (
    LOST_FORWARD,
    LOST_REVERSE,
    PacketCollector,
    Stream,
    StreamKey,
    Transits,
)
from pathbudget.probes.record import (
    AddressFamily,
    ClockSource,
    Direction,
    Failure,
    FailureKind,
    Measurement,
    Metric,
    NoiseFloor,
    Sample,
    Stage,
    Stamps,
    Target,
    Vantage,
)

START = 1_790_000_000_000_000_000
MS = 1_000_000
Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Way:
    """Constant part and gamma variation of one direction, ms, and its share of random loss."""

    base_ms: float
    shape: float
    scale_ms: float
    loss: float = 0.0


@dataclass(frozen=True)
class Truth:
    """What really happened to every packet, ns."""

    sent_ns: npt.NDArray[np.int64]
    forward_ns: Numbers
    reverse_ns: Numbers
    lost_forward: npt.NDArray[np.bool_]
    lost_reverse: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Simulation:
    """A stream as the sender recorded it, and the truth."""

    stream: Stream
    truth: Truth

    def arrived(self, way: str) -> Numbers:
        """True one-way delays of the packets that were answered."""
        lost = self.truth.lost_forward | self.truth.lost_reverse
        delays = self.truth.forward_ns if way == "forward" else self.truth.reverse_ns
        return delays[~lost]


OUT = Way(30.0, 2.0, 1.0, 0.02)
BACK = Way(20.0, 1.5, 2.0, 0.01)


def simulate(
    seed: int = 1,
    n: int = 3000,
    *,
    gap_ms: float = 50.0,
    out: Way = OUT,
    back: Way = BACK,
    skew_ppm: float = 80.0,
    offset_ms: float = 123_456.0,
    step_ms: float = 0.0,
    path_ms: tuple[float, float] = (0.0, 0.0),
    error_ms: float | None = None,
    placed: bool = True,
    clock_steps: int = 0,
) -> Simulation:
    """Poisson packets over an asymmetric path; the step and the path change come half-way."""
    rng = np.random.default_rng(seed)
    sent = np.cumsum(rng.exponential(gap_ms * MS, n)).astype(np.int64)
    late = np.arange(n) >= n // 2
    forward = (out.base_ms + path_ms[0] * late + rng.gamma(out.shape, out.scale_ms, n)) * MS
    reverse = (back.base_ms + path_ms[1] * late + rng.gamma(back.shape, back.scale_ms, n)) * MS
    lost_forward = rng.random(n) < out.loss
    lost_reverse = ~lost_forward & (rng.random(n) < back.loss)
    lost = lost_forward | lost_reverse
    offset = offset_ms * MS + skew_ppm * 1e-6 * sent + step_ms * MS * late
    round_trips = np.where(lost, np.inf, forward + reverse)
    errors = np.full(n, np.nan if error_ms is None else error_ms * MS)
    marks = lost_forward * LOST_FORWARD + lost_reverse * LOST_REVERSE
    stream = Stream(
        key=StreamKey(
            "west", "alpha", "alpha-edge", "192.0.2.1", "stamp", "ipv4", "west-1", "", 1, False
        ),
        sent_unix_ns=START + sent,
        sequence=np.arange(n),
        round_trips_ns=round_trips,
        received_ns=round_trips,
        forward=Transits(np.where(lost, np.nan, forward + offset), errors),
        reverse=Transits(np.where(lost, np.nan, reverse - offset), errors),
        flows=np.full(n, -1),
        runs=np.zeros(n, dtype=np.int64),
        flow_sets=np.zeros(1, dtype=np.int64),
        marks=(marks if placed else marks * 0).astype(np.uint8),
        counters=Counter({} if placed else {"stateless_reflector": 1}),
        noise_floor_ns=10_000,
        tmax_ns=2_000_000_000,
        clock_steps=clock_steps,
    )
    return Simulation(stream, Truth(sent, forward, reverse, lost_forward, lost_reverse))


def samples_of(made: Simulation, flags: tuple[str, ...] = ()) -> tuple[Sample, ...]:
    """What a STAMP probe emits for a simulated stream."""
    stream, samples = made.stream, list[Sample]()
    for i in range(stream.n):
        sent, seq = int(stream.sent_unix_ns[i]), int(stream.sequence[i])
        if stream.lost[i]:
            way = {LOST_FORWARD: Direction.FORWARD, LOST_REVERSE: Direction.REVERSE}
            direction = way.get(int(stream.marks[i]))
            failure = Failure(FailureKind.TIMEOUT, Stage.WAIT, direction=direction)
            samples.append(Sample(seq, Metric.RTT, sent, failure=failure))
            continue
        numbers = {
            Metric.RTT: stream.round_trips_ns[i],
            Metric.TRANSIT_FORWARD: stream.forward.values_ns[i],
            Metric.TRANSIT_REVERSE: stream.reverse.values_ns[i],
            Metric.RESIDENCE: 20_000,
        }
        error = stream.forward.errors_ns[i]
        for metric, value in numbers.items():
            one_way = metric in (Metric.TRANSIT_FORWARD, Metric.TRANSIT_REVERSE)
            samples.append(
                Sample(
                    seq,
                    metric,
                    sent,
                    round(float(value)),
                    clock_source=ClockSource.KERNEL,
                    flags=flags,
                    error_ns=round(float(error)) if one_way and error == error else None,
                    stamps=Stamps(0, -5_000, 0, round(float(stream.received_ns[i])) + 20_000),
                )
            )
    return tuple(samples)


def measurement_of(
    samples: tuple[Sample, ...],
    *,
    probe: str = "stamp",
    site: str = "alpha",
    target: str = "alpha-edge",
    schedule: str = "poisson 50ms seed 1",
    counters: dict[str, int] | None = None,
    name: str = "m1",
) -> Measurement:
    """One measurement around the samples."""
    return Measurement(
        id=name,
        vantage=Vantage("west-1", "west"),
        target=Target(target, "edge.example", site=site, port=862),
        probe=probe,
        started_unix_ns=samples[0].sent_unix_ns,
        samples=samples,
        address="192.0.2.1",
        family=AddressFamily.IPV4,
        options={"timeout_ns": 2_000_000_000, "run": name},
        schedule=schedule,
        noise=NoiseFloor(10_000, ClockSource.KERNEL, 50_000, 900_000),
        counters=counters or {},
    )


def stream_of(*measurements: Measurement) -> Stream:
    """The one stream of some measurements."""
    collector = PacketCollector()
    for measurement in measurements:
        collector.add(measurement)
    (stream,) = collector.finish()
    return stream
