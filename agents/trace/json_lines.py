"""One JSON object a line, for scripts; docs/routes.md has the fields."""

from collections.abc import Mapping

import msgspec

from pathbudget.agents.ping.figures import percentile
from pathbudget.agents.ping.sketch import Sketch
from pathbudget.agents.trace.hop_rows import Branch, HopRow, hop_rows
from pathbudget.agents.trace.known import Known
from pathbudget.agents.trace.path_state import PathState, Round
from pathbudget.analysis.hop_loss import JudgedHop
from pathbudget.probes.codec import encode_sample
from pathbudget.probes.record import ClockQuality, Measurement, NoiseFloor, Sample

_encoder = msgspec.json.Encoder()
Verdicts = Mapping[int, JudgedHop]


def begin_line(host: str, measurement: Measurement) -> bytes:
    """A host (or a new address of it) is about to be traced."""
    return _line(
        "begin",
        host=host,
        probe=measurement.probe,
        address=measurement.address,
        family=measurement.family,
        started_unix_ns=measurement.started_unix_ns,
        schedule=measurement.schedule,
        options=measurement.options,
        software=measurement.software,
    )


def sample_line(state: PathState, sample: Sample) -> bytes:
    """One sample: the fields of the record, with the host before them."""
    head = _encoder.encode({"type": "sample", "host": state.host})
    return head[:-1] + b"," + encode_sample(sample)[1:] + b"\n"


def dropped_line(lines: int) -> bytes:
    """So many sample lines are missing here: their reader stood still for too long."""
    return _line("dropped", lines=lines)


def round_line(state: PathState, ended: Round, verdicts: Verdicts, known: Known) -> bytes:
    """A round ended: the path set, what changed since the first one, figures of all rounds."""
    return _line(
        "round",
        host=state.host,
        address=state.address,
        round=ended.number + 1,  # as on the screen
        reached=ended.reached,
        stopped=ended.stopped,
        failure=ended.failure or None,
        complete=ended.complete,
        confidence=ended.confidence,
        path_mtu=ended.path_mtu,
        black_hole=ended.black_hole,
        per_packet=ended.per_packet or None,
        changed=ended.changed,
        paths=_paths(ended),
        hops=[_hop(row, known) for row in hop_rows(state, verdicts)],
    )


def summary_line(
    state: PathState,
    verdicts: Verdicts,
    known: Known,
    clock: ClockQuality | None,
    noise: NoiseFloor | None,
    duration_ns: int,
) -> bytes:
    """All that is known at the end."""
    return _line(
        "summary",
        host=state.host,
        address=state.address,
        protocol=state.protocol,
        port=state.port,
        duration_ns=duration_ns,
        rounds=state.rounds,
        reached=state.reached,
        left_out=state.left_out,
        rtt=_figures(state.target),
        failures=state.failures,
        counters=state.counted,
        hops=[_hop(row, known) for row in hop_rows(state, verdicts)],
        clock=clock,
        noise=noise,
    )


def _paths(ended: Round) -> list[dict[str, object]]:
    """What each flow passed, from hop limit 1 on; null where nobody answered."""
    return [
        {"flow": flow, "hops": [hops.get(limit) for limit in range(1, max(hops, default=0) + 1)]}
        for flow, hops in ended.flows.items()
    ]


def _hop(row: HopRow, known: Known) -> dict[str, object]:
    return {
        "limit": row.limit,
        "flows": row.asked,
        "silent_flows": row.silent_flows,
        "sent": row.state.sent,
        "answered": row.state.answered,
        "verdict": row.judged.verdict if row.judged else None,
        "lost_at_least": row.judged.lost_at_least if row.judged else None,
        "change": row.change or None,
        "gone": row.gone,
        "addresses": [_branch(one, known) for one in row.branches],
    }


def _branch(branch: Branch, known: Known) -> dict[str, object]:
    address, router = branch.address, branch.router
    facts: dict[str, object] = {"address": address, "flows": branch.flows}
    if address in known.origins:
        facts |= {"as": known.origins[address].number or None}
        facts |= {"as_name": known.origins[address].name or None}
    if address in known.names:
        facts["name"] = known.names[address]
    if router is None:
        return facts
    facts |= {"rtt": _figures(router.rtt), "return_hops": router.return_hops}
    facts |= {"mpls": router.labels or None, "mtu": router.mtu, "translated": router.translated}
    return facts | {"refusal": router.refusal or None, "interface": router.interface or None}


def _figures(sketch: Sketch) -> dict[str, object]:
    return {
        "n": sketch.n,
        "minimum_ns": sketch.minimum if sketch.n else None,
        "p50_ns": sketch.quantile(0.5),
        "p95_ns": percentile(sketch, 0.95),
    }


def _line(kind: str, **fields: object) -> bytes:
    return _encoder.encode({"type": kind, **fields}) + b"\n"
