"""One JSON object a line, for scripts; docs/ping.md has the fields.

Samples are written in the codec's own words. `line_writer.py` puts the lines out.
"""

import math

import msgspec

from pathbudget.agents.ping.figures import Figures, figures, load_figures
from pathbudget.agents.ping.host_state import HostState
from pathbudget.analysis.outage_rule import Outage
from pathbudget.probes.codec import encode_sample
from pathbudget.probes.record import ClockQuality, Direction, Measurement, NoiseFloor, Sample

_encoder = msgspec.json.Encoder()


def begin_line(host: str, socket: str, measurement: Measurement, notice: str) -> bytes:
    """A host (or a new address of it) is about to be measured."""
    return _line(
        "begin",
        host=host,
        probe=measurement.probe,
        socket=socket,
        address=measurement.address,
        family=measurement.family,
        started_unix_ns=measurement.started_unix_ns,
        schedule=measurement.schedule,
        options=measurement.options,
        notice=notice or None,
        software=measurement.software,
    )


def sample_line(state: HostState, sample: Sample) -> bytes:
    """One sample: the fields of the record, with host and probe before them."""
    head = _encoder.encode({"type": "sample", "host": state.host, "probe": state.probe})
    return head[:-1] + b"," + encode_sample(sample)[1:] + b"\n"


def dropped_line(lines: int) -> bytes:
    """So many sample lines are missing here: their reader stood still for too long."""
    return _line("dropped", lines=lines)


def outage_line(state: HostState, outage: Outage) -> bytes:
    """An outage was noticed, or is over."""
    return _line(
        "outage",
        host=state.host,
        probe=state.probe,
        state="ended" if outage.over else "began",
        **outage._asdict(),
    )


def summary_line(
    state: HostState,
    clock: ClockQuality | None,
    noise: NoiseFloor | None,
    duration_ns: int,
    floor_ns: int | None,
) -> bytes:
    """All that is known at the end. `floor_ns` is that of the clocks of these very samples."""
    shown = figures(state)
    return _line(
        "summary",
        host=state.host,
        probe=state.probe,
        address=state.address,
        duration_ns=duration_ns,
        sent=state.sent,
        lost=state.lost,
        not_sent=state.not_sent,
        loss_ratio=state.loss_ratio,
        **_figures(state, shown),
        **_parts(state),
        flags=state.flags,
        counters=state.counted,
        failures=state.failures,
        clock_sources=state.clocks,
        outages=state.watch.count,
        clock=clock,
        noise=noise,
        noise_floor_ns=floor_ns,
    )


def _figures(state: HostState, shown: Figures) -> dict[str, object]:
    """JSON has no infinity: a percentile that is lost is null, and named in `lost_percentiles`."""
    numbers = {name: value for name, value in shown._asdict().items() if name.endswith("_ns")}
    values = {name: _finite(value) for name, value in numbers.items()}
    lost = [name for name, value in numbers.items() if value is not None and math.isinf(value)]
    known = [one for one in (values["p50_ns"], values["p95_ns"]) if one is not None]
    error = max((state.answers.error_ns(one) for one in known), default=0)
    return {**values, "lost_percentiles": lost, "percentile_error_ns": error}


def _parts(state: HostState) -> dict[str, object]:
    """What only some runs have: directions, flows, load."""
    parts: dict[str, object] = {}
    both = state.directions.figures()
    if both is not None:
        parts["forward"], parts["reverse"] = both[0]._asdict(), both[1]._asdict()
    placed = state.lost_by_direction
    if placed is not None:
        parts["lost_by_direction"] = {
            **{str(one): getattr(placed, one) for one in Direction},
            "unknown": placed.unknown,
        }
    if state.flows:
        parts["flows"] = {
            str(flow): {"n": one.n, "minimum_ns": one.minimum, "p50_ns": one.quantile(0.5)}
            for flow, one in state.flows.items()
        }
    load = load_figures(state)
    if load is not None:
        parts["load"] = {
            name: {"p50_ns": _finite(pair[0]), "p95_ns": _finite(pair[1])}
            for name, pair in load._asdict().items()
        }
    if state.own_load is not None:
        parts["own_load"] = {
            **state.own_load._asdict(),
            "loss_ratio": {phase: one.loss_ratio for phase, one in state.phases.items()},
        }
    return parts


def _finite(value: float | None) -> int | None:
    return None if value is None or math.isinf(value) else round(value)


def _line(kind: str, **fields: object) -> bytes:
    return _encoder.encode({"type": kind, **fields}) + b"\n"
