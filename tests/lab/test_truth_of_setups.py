"""What a new connection costs, in round trips, against servers that others wrote.

The paths take 10, 40 and 150 ms. A TLS connection takes one round trip for TCP and one for the
handshake, resumed or not; early data spares the second, QUIC the first, and both together both.
HelloRetryRequest, Retry and a chain beyond the initial window cost one more each.
"""

import importlib.util
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pathbudget.agents.lab.link import DirectionModel
from pathbudget.agents.lab.running import Lab
from pathbudget.agents.lab.topology import Link, Node, NodeKind
from pathbudget.agents.lab.world_check import build_world

pytestmark = [pytest.mark.needs("lab"), pytest.mark.needs("nginx"), pytest.mark.needs("gtlsserver")]
STARTS_LABS_HERE = True
MS = 1_000_000
ROUND_TRIPS_MS = (10, 40, 150)
FIRING = Path(__file__).parent / "firing.py"
SHOTS = 7


def _servers() -> Any:
    spec = importlib.util.spec_from_file_location(
        "others_servers", Path(__file__).parent / "others_servers.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SERVERS = _servers()
Sample = dict[str, Any]


@dataclass(frozen=True)
class Expected:
    """One job of the prober, and how many round trips its set-up takes."""

    kind: str
    port: int
    mode: str
    trips: int
    flag: str = ""
    options: tuple[tuple[str, Any], ...] = ()


EXPECTED = {
    "tls full": Expected("tls", SERVERS.TLS_PORT, "cold", 2),
    "tls resumed": Expected("tls", SERVERS.TLS_PORT, "resumed", 2),
    "tls early data": Expected("tls", SERVERS.TLS_PORT, "early_data", 1),
    "tls hello retry": Expected("tls", SERVERS.OTHER_GROUP_PORT, "cold", 3, "hello_retry"),
    "tls long chain": Expected("tls", SERVERS.LONG_CHAIN_PORT, "cold", 3, "second_flight"),
    "quic": Expected("quic", SERVERS.QUIC_PORT, "cold", 1),
    "quic resumed": Expected("quic", SERVERS.QUIC_PORT, "resumed", 1),
    "quic early data": Expected("quic", SERVERS.QUIC_PORT, "early_data", 0),
    "quic retry": Expected("quic", SERVERS.QUIC_RETRY_PORT, "cold", 2, "retry"),
    "http warm": Expected("http", SERVERS.TLS_PORT, "warm", 0, options=(("version", "2"),)),
}


def star() -> Any:
    """One region, one router, one site at each round trip."""
    nodes = [Node("region", NodeKind.REGION), Node("router", NodeKind.ROUTER)]
    near = DirectionModel(delay_ns=1 * MS)
    links = [Link("region", "router", near, near)]
    for trip in ROUND_TRIPS_MS:
        nodes.append(Node(site_at(trip), NodeKind.SITE, responder=False, reflector=False))
        far = DirectionModel(delay_ns=trip * MS // 2 - 1 * MS)
        links.append(Link("router", site_at(trip), far, far))
    return build_world(nodes, links)


def site_at(trip_ms: int) -> str:
    return f"site{trip_ms}"


def job_of(lab: Lab, folder: Path, name: str, trip: int) -> dict[str, Any]:
    expected = EXPECTED[name]
    options = {"mode": expected.mode, "ca_file": str(folder / "ca.pem"), **dict(expected.options)}
    return {
        "name": f"{name} {trip}",
        "kind": expected.kind,
        "address": lab.address_of(site_at(trip)),
        "port": expected.port,
        "server_name": SERVERS.NAME,
        "shots": SHOTS,
        "gap_ms": 20,
        "options": options,
    }


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Sample]]:
    folder = tmp_path_factory.mktemp("servers")
    SERVERS.make_certificates(folder)
    with Lab(star()) as lab:
        for trip in ROUND_TRIPS_MS:
            SERVERS.start(lab, site_at(trip), folder)
        # By themselves where a millisecond counts: servers and prober share two cores.
        near, *far = ROUND_TRIPS_MS
        waves = [[job_of(lab, folder, name, near)] for name in EXPECTED]
        waves += [[job_of(lab, folder, name, trip) for name in EXPECTED] for trip in far]
        order = json.dumps({"waves": waves})
        command = [sys.executable, str(FIRING), order]
        said, _ = lab.spawn("region", command, stdout=subprocess.PIPE).communicate()
    found: dict[str, list[Sample]] = json.loads(said)
    return found


def of(samples: list[Sample], metric: str, mode: str) -> list[Sample]:
    return [one for one in samples if one["metric"] == metric and one.get("mode") == mode]


@pytest.mark.parametrize("trip", ROUND_TRIPS_MS)
@pytest.mark.parametrize("name", EXPECTED)
def test_set_up_takes_so_many_round_trips(
    name: str, trip: int, measured: dict[str, list[Sample]]
) -> None:
    expected = EXPECTED[name]
    setups = of(measured[f"{name} {trip}"], "setup", expected.mode)
    failed = [one for one in measured[f"{name} {trip}"] if "failure" in one]
    assert not failed
    assert len(setups) >= SHOTS - 2, "the first may be cold: it fetches the ticket"
    # The quickest: the work of the servers, which a busy host delays, is on the path.
    quickest_ms = min(one["value_ns"] for one in setups) / MS
    wanted_ms = expected.trips * trip
    assert abs(quickest_ms - wanted_ms) <= 0.05 * wanted_ms + 1
    flagged = [expected.flag in one.get("flags", ()) for one in setups]
    # A host too busy to read a pause apart cannot mark each of them.
    assert not expected.flag or 2 * sum(flagged) > len(flagged)
