"""Thirty tokens a second over a way back of known variation and half a per cent of loss.

The delivery gap of a chunk minus its send gap is the difference of two delays of the link. Where a
segment is lost, TCP sends it again a round trip and more later, and what came meanwhile is handed
over with it: so a few chunks per loss are late, and all others tell of the link.
"""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom
from tests.conftest import NOTES

from pathbudget.agents.lab.link import DirectionModel, Variation, VariationKind
from pathbudget.agents.lab.report import LabReport
from pathbudget.agents.lab.running import Lab
from pathbudget.agents.lab.topology import Link, Node, NodeKind
from pathbudget.agents.lab.truth import one_way_truth
from pathbudget.agents.lab.world import World
from pathbudget.agents.lab.world_check import build_world
from pathbudget.probes.reflector_http import HTTPS_PORT

pytestmark = [pytest.mark.needs("lab")]
STARTS_LABS_HERE = True
MS = 1_000_000
FIRING = Path(__file__).parent / "firing.py"
STREAMS, CHUNKS, INTERVAL_MS = 12, 240, 33.333
BUFFER_MS = 25.0
LOSS = 0.005
WAY_BACK = DirectionModel(
    delay_ns=19 * MS, loss=LOSS, variation=Variation(VariationKind.NORMAL, scale_ns=2 * MS)
)
DISTURBED = 0.04
"""Largest share of chunks that losses disturb: each, and the few that wait behind it."""
SHARES = (0.1, 0.25, 0.5, 0.75, 0.9)


@dataclass(frozen=True)
class Seen:
    samples: list[dict[str, Any]]
    report: LabReport

    def values_ms(self, metric: str) -> NDArray[np.float64]:
        chosen = [one["value_ns"] for one in self.samples if one["metric"] == metric]
        return np.array(chosen) / MS


def world() -> World:
    near, there = DirectionModel(delay_ns=1 * MS), DirectionModel(delay_ns=19 * MS)
    nodes = [
        Node("region", NodeKind.REGION),
        Node("router", NodeKind.ROUTER),
        Node("site", NodeKind.SITE, responder=False, reflector=True),
    ]
    links = [Link("region", "router", near, near), Link("router", "site", there, WAY_BACK)]
    return build_world(nodes, links)


@pytest.fixture(scope="module")
def seen(request: pytest.FixtureRequest) -> Seen:
    options = {"chunks": CHUNKS, "interval_ms": INTERVAL_MS, "verify": False}
    with Lab(world()) as lab:
        job = {"kind": "token_stream", "options": options, "port": HTTPS_PORT}
        jobs = [
            {**job, "name": str(number), "address": lab.address_of("site")}
            for number in range(STREAMS)
        ]
        order = json.dumps({"waves": [jobs], "timeout_ms": 30_000})
        before = lab.report()
        command = [sys.executable, str(FIRING), order]
        said, _ = lab.spawn("region", command, stdout=subprocess.PIPE).communicate()
        report = lab.report().since(before)
    request.config.stash[NOTES].append(f"Token streams: the lab's own error {report}")
    return Seen([one for samples in json.loads(said).values() for one in samples], report)


def differences(world_: World) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Values in ms and cumulative probability of the difference of two delays of the way back."""
    truth = one_way_truth(world_)["site", "region"]
    coarse = truth.cells.reshape(-1, 16).sum(axis=1)
    both = np.convolve(coarse, coarse[::-1])
    step = 16 * truth.cell_ms
    values = (np.arange(len(both)) - (len(coarse) - 1)) * step
    return np.asarray(values, dtype=np.float64), np.asarray(
        both.cumsum() / both.sum(), dtype=np.float64
    )


def test_every_chunk_came(seen: Seen) -> None:
    assert not [one for one in seen.samples if "failure" in one]
    assert len(seen.values_ms("delivery_gap")) == STREAMS * (CHUNKS - 1)


@pytest.mark.parametrize("share", SHARES)
def test_gaps_vary_as_the_link_does(share: float, seen: Seen) -> None:
    """Within what losses may disturb, what chance may do to so many, and the lab's own error."""
    values, cumulative = differences(world())
    measured = seen.values_ms("delivery_variation")
    slack = DISTURBED + 3 * (share * (1 - share) / len(measured)) ** 0.5
    low = np.interp(max(share - slack, 1e-6), cumulative, values)
    high = np.interp(min(share + slack, 1 - 1e-6), cumulative, values)
    own_ms = 0.3 + 2 * max(0.0, seen.report.error_us(0.95)) / 1000
    assert low - own_ms <= np.quantile(measured, share) <= high + own_ms


def test_each_loss_stalls_the_stream_once(seen: Seen) -> None:
    gaps = seen.values_ms("delivery_gap")
    stalls = int(np.count_nonzero(gaps > INTERVAL_MS + BUFFER_MS))
    few, many = (float(binom.ppf(share, len(gaps), LOSS)) for share in (0.0005, 0.9995))
    assert few <= stalls <= many


def test_sender_stamps_are_the_kernels(seen: Seen) -> None:
    sources = {one["clock_source"] for one in seen.samples if one["metric"] == "delivery_variation"}
    assert sources == {"kernel"}
