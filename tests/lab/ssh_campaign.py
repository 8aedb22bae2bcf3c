"""One campaign twice in the lab: from this machine, and over SSH from its regions. Run as root:

    python -m tests.lab.ssh_campaign FOLDER DURATION_S INTERVAL_MS LINK_DOWN_S

Each region has an OpenSSH server in its namespace; who controls sits in a region of its own, and
its connections go over the emulated links. While the campaign runs, the link of the first region is
pulled for a time, and all connections of the second are killed. Leaves ``result.json``.
"""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.ssh.servers import Server, host_table, make_key

from pathbudget.agents.campaign.campaign_file import load_campaign
from pathbudget.agents.campaign.plan import due_shots
from pathbudget.agents.lab.geography import world_from_places
from pathbudget.agents.lab.link import DirectionModel
from pathbudget.agents.lab.running import Lab
from pathbudget.agents.store.parquet import Store
from pathbudget.probes.table import probe_table

REGIONS = (
    ("dallas", 32.8, -96.8),
    ("chicago", 41.9, -87.6),
    ("new-york", 40.7, -74.0),
    ("los-angeles", 34.1, -118.2),
    ("miami", 25.8, -80.2),
    ("seattle", 47.6, -122.3),
    ("atlanta", 33.7, -84.4),
    ("boston", 42.4, -71.1),
    ("denver", 39.7, -105.0),
    ("phoenix", 33.4, -112.1),
)
CONTROL = ("control", 38.9, -77.0)
SITES = (("ashburn", 39.0, -77.5), ("santa-clara", 37.4, -122.0), ("houston", 29.8, -95.4))
PULLED, KILLED = REGIONS[0][0], REGIONS[1][0]
PATHBUDGET = [sys.executable, "-c", "from pathbudget.agents.cli.main import run; run()"]
STARTED_WITHIN_S = 120.0


@dataclass
class Result:
    """What came of both. Pairs are ``region site``."""

    planned: dict[str, int] = field(default_factory=dict[str, int])
    """Probes by region."""
    stored: dict[str, int] = field(default_factory=dict[str, int])
    """Samples over SSH, numbers and failures."""
    failed: dict[str, int] = field(default_factory=dict[str, int])
    distinct: dict[str, int] = field(default_factory=dict[str, int])
    """Samples over SSH by series and number: as many as there are, where none came twice."""
    local_ms: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    ssh_ms: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    error_us: dict[str, float] = field(default_factory=dict[str, float])
    """By how much the lab was late in 95 % of deliveries, in each of the two runs."""
    killed_processes: int = 0
    said: list[str] = field(default_factory=list[str])
    """Progress, where it is not on a terminal."""


def measure(folder: Path, duration_s: float, interval_ms: float, down_s: float) -> Result:
    result = Result()
    world = world_from_places([*REGIONS, CONTROL], SITES, seed=5)
    with Lab(world) as lab, lab.as_session(), contextlib.ExitStack() as stack:
        _write_catalogue(folder, lab)
        _write_campaign(folder / "local.toml", duration_s, interval_ms, in_namespaces=True)
        _write_campaign(folder / "campaign.toml", duration_s, interval_ms, in_namespaces=False)
        user_key = make_key(folder / "user_key")
        servers = {
            name: _serve(lab, name, folder, user_key, stack.callback) for name, *_ in REGIONS
        }
        (folder / "known_hosts").write_text(
            "".join(server.known_hosts_line for server in servers.values())
        )
        hosts = (host_table(server, name, folder / name) for name, server in servers.items())
        (folder / "hosts.toml").write_text("".join(hosts))
        before = lab.report()
        command = [*PATHBUDGET, "run", "local.toml", "--store", "local", "--realtime", "off", "-q"]
        subprocess.run(command, cwd=folder, check=True)
        between = lab.report()
        result.error_us["local"] = between.since(before).error_us(0.95)
        _over_ssh(lab, folder, servers[KILLED], down_s, result)
        result.error_us["ssh"] = lab.report().since(between).error_us(0.95)
    _account(folder, result)
    return result


def _serve(
    lab: Lab, name: str, folder: Path, user_key: Path, at_end: Callable[..., object]
) -> Server:
    server = Server(
        folder / f"sshd-{name}",
        lab.address_of(name),
        22,
        user_key,
        start=lambda command: lab.spawn(name, command, stderr=subprocess.DEVNULL),
    )
    at_end(server.down)
    server.up()
    lab.call(name, server.wait)
    return server


def _over_ssh(lab: Lab, folder: Path, killed: Server, down_s: float, result: Result) -> None:
    log = folder / "progress"
    with log.open("wb") as stderr:
        words = ["campaign.toml", "--hosts", "hosts.toml", "--store", "ssh", "--realtime", "off"]
        running = lab.spawn("control", [*PATHBUDGET, "run", *words], cwd=folder, stderr=stderr)
    spool = folder / "ssh" / "spool"
    _until(lambda: _samples_came(spool, (PULLED, KILLED)), running)
    with _pulled(lab, PULLED):
        result.killed_processes = killed.cut()
        time.sleep(down_s)
    code = running.wait()
    result.said = log.read_text().splitlines()
    assert code == 0, log.read_text()


@contextlib.contextmanager
def _pulled(lab: Lab, region: str) -> Generator[None]:
    """Nothing passes the links of a region, there and back."""
    nothing = DirectionModel(loss=1.0)
    ways = [(region, step.destination) for step in lab.world.passes[region]]
    ways += [(other, region) for _, other in ways]
    before = {
        (source, step.destination): step.models[0]
        for source in {source for source, _ in ways}
        for step in lab.world.passes[source]
    }
    for source, destination in ways:
        lab.change(source, destination, nothing)
    yield
    for source, destination in ways:
        lab.change(source, destination, before[source, destination])


def _samples_came(spool: Path, regions: Sequence[str]) -> bool:
    """Whether there are samples here of each of them: then they have begun."""
    numbers = [[name for name, *_ in REGIONS].index(region) for region in regions]
    copies = [list(spool.glob(f"*-{number:03}-0.jsonl.partial")) for number in numbers]
    return all(found and b'"in":' in found[0].read_bytes() for found in copies)


def _until(holds: Callable[[], bool], running: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + STARTED_WITHIN_S
    while not holds():
        assert running.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _account(folder: Path, result: Result) -> None:
    plan = load_campaign(folder / "campaign.toml", probe_table()).plan
    result.planned = {one.vantage.name: sum(1 for _ in due_shots(one)) for one in plan.vantages}
    result.local_ms = _round_trips(folder / "local")
    result.ssh_ms = _round_trips(folder / "ssh")
    for measurement in Store(folder / "ssh").measurements():
        name = measurement.vantage.name
        samples = measurement.samples
        result.stored[name] = result.stored.get(name, 0) + len(samples)
        failed = sum(sample.failure is not None for sample in samples)
        result.failed[name] = result.failed.get(name, 0) + failed
        numbers = len({sample.seq for sample in samples})
        result.distinct[name] = result.distinct.get(name, 0) + numbers


def _round_trips(store: Path) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for one in Store(store).measurements():
        pair = found.setdefault(f"{one.vantage.name} {one.target.site}", [])
        pair += [sample.value_ns / 1e6 for sample in one.samples if sample.value_ns is not None]
    return found


def _write_catalogue(folder: Path, lab: Lab) -> None:
    lines: list[str] = []
    for name, latitude, longitude in REGIONS:
        lines += ["[[region]]", f'name = "{name}"']
        lines += [f"latitude = {latitude}", f"longitude = {longitude}"]
    for name, latitude, longitude in SITES:
        lines += ["[[site]]", f'name = "{name}"', 'operator = "lab"']
        lines += [f"latitude = {latitude}", f"longitude = {longitude}"]
        lines += ["[[site.target]]", f'name = "{name}"', f'host = "{lab.address_of(name)}"']
    (folder / "catalogue.toml").write_text("\n".join(lines) + "\n")


def _write_campaign(
    path: Path, duration_s: float, interval_ms: float, *, in_namespaces: bool
) -> None:
    lines = ['name = "regions"', 'catalogue = "catalogue.toml"', f'duration = "{duration_s:g}s"']
    lines += ["seed = 7", "[limits]", "packets_per_second_per_target = 2000"]
    lines += ["[[probe]]", 'kind = "icmp"', f'interval = "{interval_ms:g}ms"', 'timeout = "1s"']
    for name, *_ in REGIONS:
        lines += ["[[vantage]]", f'name = "{name}"', f'region = "{name}"']
        lines += [f'namespace = "lab:{name}"'] if in_namespaces else []
    path.write_text("\n".join(lines) + "\n")


def main(folder: str, duration_s: str, interval_ms: str, down_s: str) -> None:
    where = Path(folder)
    where.mkdir(parents=True, exist_ok=True)
    os.environ["XDG_CACHE_HOME"] = str(where / "cache")  # of bundles
    result = measure(where, float(duration_s), float(interval_ms), float(down_s))
    (where / "result.json").write_text(json.dumps(asdict(result)))


if __name__ == "__main__":
    main(*sys.argv[1:])
