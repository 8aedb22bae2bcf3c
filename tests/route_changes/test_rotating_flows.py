"""RIPE Atlas traces one flow at a time, and another one each time: that is no change of route."""

import json
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from pathbudget.agents.importers.ripe_atlas import read_results
from pathbudget.analysis.routes.evaluate import evaluate_routes
from pathbudget.analysis.routes.model import Cause, RouteEventKind
from pathbudget.analysis.routes.route_report import RouteReport

PARIS_IDS = 16
EVERY_S = 900
START_S = 1_700_000_000
TARGET = "198.51.100.9"


def judged(
    folder: Path, seed: int, ways: Sequence[int], traces: int = 160, moved_from: int | None = None
) -> RouteReport:
    """Traces whose Paris number goes round, over hops with so many ways each; the middle hop has
    other addresses from a trace on. One answer in twenty is missing.
    """
    rng = random.Random(seed)
    branch = {
        (hop, flow): rng.randrange(n) for hop, n in enumerate(ways) for flow in range(PARIS_IDS)
    }
    lines: list[str] = []
    for trace in range(traces):
        flow = trace % PARIS_IDS
        moved = moved_from is not None and trace >= moved_from
        hops = [
            f"10.{hop}.{int(moved and hop == len(ways) // 2)}.{branch[hop, flow]}"
            for hop in range(len(ways))
        ]
        result = [
            {
                "hop": limit,
                "result": [
                    {"x": "*"}
                    if who != TARGET and rng.random() < 0.05
                    else {"from": who, "ttl": 60, "size": 68, "rtt": limit + rng.random()}
                    for _ in range(3)
                ],
            }
            for limit, who in enumerate([*hops, TARGET], 1)
        ]
        at = START_S + trace * EVERY_S
        facts = {
            "type": "traceroute", "fw": 5080, "lts": 10, "timestamp": at, "endtime": at + 2,
            "msm_id": 5001, "prb_id": 77, "dst_name": TARGET, "dst_addr": TARGET,
            "src_addr": "192.0.2.7", "from": "192.0.2.7", "proto": "ICMP", "af": 4, "size": 48,
            "paris_id": flow + 1, "result": result,
        }  # fmt: skip
        lines.append(json.dumps(facts))
    path = folder / "results.jsonl"
    path.write_text("\n".join(lines))
    return evaluate_routes(read_results([path]))


@pytest.mark.parametrize(
    ("seed", "ways"), [(1, (1, 2, 1)), (2, (1, 4, 4, 1)), (3, (2, 3, 8, 2)), (4, (1, 16, 2))]
)
def test_another_flow_over_the_same_paths_is_no_change(
    tmp_path: Path, seed: int, ways: tuple[int, ...]
) -> None:
    report = judged(tmp_path, seed, ways)
    assert sum(one.observations for row in report.stability for one in row.routes) == 160
    assert (report.events, report.incidents) == ((), ())


def test_a_move_under_rotating_flows_is_told_once(tmp_path: Path) -> None:
    report = judged(tmp_path, 5, (1, 4, 4, 1), moved_from=80)
    (event,) = report.events
    assert event.kind is RouteEventKind.SHIFT
    moved_ns = (START_S + 80 * EVERY_S) * 10**9
    assert event.window.after_unix_ns <= moved_ns <= event.window.by_unix_ns
    assert [one.cause for one in report.incidents] == [Cause.PATH_MOVED]
