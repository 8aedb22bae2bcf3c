"""What one machine takes of a fleet: agents' results through the bus into Parquet.

    .venv/bin/python benchmarks/fleet_load.py
    .venv/bin/python benchmarks/fleet_load.py --cluster

Needs nats-server. Simulated agents, each with a login, a link and the uplink of a real one, publish
measurements of a minute (60 samples each, as `pathbudget agent` writes them) as fast as the bus
acknowledges them; one collector process writes them. `sustained`: until everything is stored.
Beside it, in the same run, what the bus alone takes (nobody collects) and what the store alone
takes (no bus). Memory is the peak of each process, CPU user + system. `--cluster`: three
servers with three replicas, of which the one that leads is killed when half is published. On a
shared machine only ratios mean much.
"""

import argparse
import asyncio
import contextlib
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from pathbudget.agents.bus.connection import close, connect
from pathbudget.agents.bus.link import Link
from pathbudget.agents.bus.login import Login, read_login
from pathbudget.agents.bus.packing import packed
from pathbudget.agents.bus.subjects import OPERATOR, RESULTS_STREAM
from pathbudget.agents.bus.uplink import BusUplink
from pathbudget.agents.collector.status import STATUS, read_status
from pathbudget.agents.fleet.enrolment import enrol
from pathbudget.agents.fleet.folder import Folder
from pathbudget.agents.fleet.invitation import invite
from pathbudget.agents.fleet.reload import running_pid
from pathbudget.agents.plans.keys import generate
from pathbudget.agents.spool.entry import Entry
from pathbudget.agents.store.parquet import Store
from pathbudget.probes.codec import encode_line
from pathbudget.probes.errors import BusError, StoreError
from pathbudget.probes.record import ClockSource, Measurement, Metric, Sample, Target, Vantage

PER_MEASUREMENT = 60
AT_ONCE = 400
BEGAN = 1_790_000_000_000_000_000
MINUTE_NS = 60_000_000_000
DAY_NS = 86_400_000_000_000


def measurement(rng: random.Random, agent: str, number: int) -> Measurement:
    """A minute of one series, as agents write it."""
    at = BEGAN + number // 50 * MINUTE_NS
    rows = tuple(
        Sample(
            seq=n,
            metric=Metric.RTT,
            sent_unix_ns=at + n * 1_000_000_000 + rng.randrange(1_000_000),
            value_ns=20_000_000 + rng.randrange(3_000_000),
            clock_source=ClockSource.KERNEL,
        )
        for n in range(PER_MEASUREMENT)
    )
    site = f"site-{number % 50}"
    return Measurement(
        id=f"{agent}-{number:08}",
        vantage=Vantage(agent, "region"),
        target=Target(site, f"192.0.2.{number % 50 + 1}", site),
        probe="icmp",
        started_unix_ns=at,
        samples=rows,
        address=f"192.0.2.{number % 50 + 1}",
    )


class Served:
    """`pathbudget fleet serve` and a collector, as processes."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.folder = Folder(folder)
        self.store = folder.with_name("store")
        self._log = (folder.with_name("log")).open("ab")
        self.serving = self._start("fleet", "serve", str(folder), "--no-collector", *words)
        log = folder.with_name("log")
        wait_for(lambda: "serving " in log.read_text(errors="replace"))
        generate(folder.with_name("operator"), folder.with_name("operator.pub"))
        self.folder.trust(folder.with_name("operator.pub"))
        self.collector: subprocess.Popen[bytes] | None = None

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "pathbudget.agents.cli.main", *words]
        return subprocess.Popen(command, stdout=self._log, stderr=self._log)

    @property
    def server_pid(self) -> int | None:
        return running_pid(self.folder.nats)

    def collect(self) -> None:
        login = str(self.folder.path / "collector.toml")
        self.collector = self._start("collector", "--login", login, "--store", str(self.store))

    def stored(self) -> int:
        with contextlib.suppress(StoreError):
            return read_status(self.store / STATUS).measurements
        return 0

    def login(self, agent: str) -> Login:
        path = self.folder.path / f"{agent}.toml"
        ticket = invite(self.folder, agent, DAY_NS)
        for _ in range(100):  # the server has to hear of it first
            with contextlib.suppress(BusError):
                enrol(ticket, path, lambda _: None)
                return read_login(path)
            time.sleep(0.5)
        raise SystemExit("it cannot be enrolled")

    def stop(self) -> None:
        for process in (self.collector, self.serving):
            if process is not None:
                process.send_signal(signal.SIGTERM)
                process.wait(60)


CARRY = """#!/bin/sh
for node in "$(dirname "$1")"/nodes/*; do
    cp "$1" "$node/.users.new" && mv "$node/.users.new" "$node/users.conf"
    kill -HUP "$(cat "$node/nats-server.pid")"
done
exit 0
"""


class Cluster:
    """Three servers, and who serves their fleet."""

    def __init__(self, folder: Path, port: int) -> None:
        words = [f"127.0.0.1:{port + n}:{port + 10 + n}" for n in range(3)]
        command = [sys.executable, "-m", "pathbudget.agents.cli.main", "fleet", "cluster", *words]
        subprocess.run([*command, "--out", str(folder)], check=True, stdout=subprocess.DEVNULL)
        program = shutil.which("nats-server", path=os.environ["PATH"] + ":/usr/sbin")
        self.servers = {
            node.name: subprocess.Popen([str(program), "-c", "nats-server.conf"], cwd=node)
            for node in sorted((folder / "nodes").iterdir())
        }
        carry = folder.with_name("carry")
        carry.write_text(CARRY)
        carry.chmod(0o700)
        self.served = Served(folder, "--after-change", str(carry))

    async def kill_leader(self) -> None:
        """The server that the results are written by."""
        client = await connect(self.served.folder.login(OPERATOR), lambda _: None)
        found = await client.jetstream().stream_info(RESULTS_STREAM)
        await close(client)
        assert found.cluster is not None
        self.servers[str(found.cluster.leader)].kill()

    def stop(self) -> None:
        self.served.stop()
        for one in self.servers.values():
            one.terminate()
            one.wait(60)


def wait_for(holds: object, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not holds():  # type: ignore[operator]
        if time.monotonic() > end:
            raise SystemExit("it does not come")
        time.sleep(0.1)


def usage(pid: int | None) -> tuple[float, float]:
    """CPU seconds and peak memory (MB) of a process so far."""
    if pid is None:
        return 0.0, 0.0
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    ticks = os.sysconf("SC_CLK_TCK")
    peak = next(
        int(line.split()[1])
        for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        if line.startswith("VmHWM")
    )
    return (int(fields[11]) + int(fields[12])) / ticks, peak / 1024


def entries_of(agent: str, count: int, seed: int) -> list[Entry]:
    rng = random.Random(seed)
    rows = (measurement(rng, agent, n) for n in range(count))
    return [
        Entry(n, one.id, len(one.samples), one.started_unix_ns, encode_line(one))
        for n, one in enumerate(rows)
    ]


def chunks(entries: Sequence[Entry]) -> Iterator[Sequence[Entry]]:
    for first in range(0, len(entries), AT_ONCE):
        yield entries[first : first + AT_ONCE]


async def publish(login: Login, entries: Sequence[Entry]) -> int:
    """As an agent's delivery does: what is not acknowledged is sent again. How often that was."""
    link = Link(login, lambda _: None)
    running = asyncio.create_task(link.run())
    uplink, again = BusUplink(link, login.user), 0
    try:
        for chunk in chunks(entries):
            left = {one.number: one for one in chunk}
            while left:
                try:
                    for number in await uplink.send(list(left.values())):
                        left.pop(number, None)
                except BusError:
                    again += 1
                    await asyncio.sleep(0.2)
        return again
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await link.close()


async def publish_all(rows: Sequence[tuple[Login, Sequence[Entry]]]) -> int:
    return sum(await asyncio.gather(*(publish(login, entries) for login, entries in rows)))


def say(what: str, seconds: float, measurements: int, more: str = "") -> None:
    samples = measurements * PER_MEASUREMENT
    print(
        f"{what:28} {seconds:7.1f} s {measurements / seconds:9,.0f} measurements/s "
        f"{samples / seconds:11,.0f} samples/s {more}",
        flush=True,
    )


def one_server(folder: Path, agents: int, each: int, port: int) -> None:
    served = Served(folder / "fleet", "--listen", f"127.0.0.1:{port}")
    try:
        names = [f"agent-{n}" for n in range(agents)]
        rows = [(served.login(name), entries_of(name, each, n)) for n, name in enumerate(names)]
        total = agents * each
        octets = sum(len(packed(one.payload)) for one in rows[0][1][:200]) / min(200, each)
        own = resource.getrusage(resource.RUSAGE_SELF)
        began, server_before = time.monotonic(), usage(served.server_pid)
        asyncio.run(publish_all(rows))
        alone_s = time.monotonic() - began
        say("bus alone", alone_s, total)
        server_cpu = usage(served.server_pid)[0] - server_before[0]
        after = resource.getrusage(resource.RUSAGE_SELF)
        agents_cpu = after.ru_utime + after.ru_stime - own.ru_utime - own.ru_stime
        served.collect()
        began = time.monotonic()
        wait_for(lambda: served.stored() >= total, 600)
        say("a backlog into the store", time.monotonic() - began, total)
        more = [(login, [_renamed(one) for one in entries]) for login, entries in rows]
        began = time.monotonic()
        asyncio.run(publish_all(more))
        published_s = time.monotonic() - began
        wait_for(lambda: served.stored() >= 2 * total, 600)
        stored_s = time.monotonic() - began
        collector_cpu, collector_mb = usage(served.collector.pid if served.collector else None)
        say(
            "agents and collector at once", stored_s, total, f"(lag {stored_s - published_s:.1f} s)"
        )
        server_mb = usage(served.server_pid)[1]
        million = 1e6 / (total * PER_MEASUREMENT)
        on_disk = sum(path.stat().st_size for path in served.store.rglob("*.parquet")) / 2
        print(
            f"a million samples cost: agents {agents_cpu * million:.1f} s of CPU, nats-server "
            f"{server_cpu * million:.1f} s, collector {collector_cpu / 2 * million:.1f} s; "
            f"{octets * 1e6 / PER_MEASUREMENT / 1e6:.1f} MB on the wire, "
            f"{on_disk * million / 1e6:.1f} MB on the disk\n"
            f"peak memory: nats-server {server_mb:.0f} MB, collector {collector_mb:.0f} MB"
        )
        measurements = [measurement(random.Random(1), "store", n) for n in range(total)]
        began = time.monotonic()
        Store(folder / "alone").write(measurements)
        say("store alone", time.monotonic() - began, total)
    finally:
        served.stop()


def three_servers(folder: Path, agents: int, each: int, port: int) -> None:
    cluster = Cluster(folder / "fleet", port)
    served = cluster.served
    try:
        names = [f"agent-{n}" for n in range(agents)]
        rows = [(served.login(name), entries_of(name, each, n)) for n, name in enumerate(names)]
        served.collect()
        half, total = each // 2, agents * each
        began = time.monotonic()
        asyncio.run(publish_all([(login, entries[:half]) for login, entries in rows]))
        first_s = time.monotonic() - began
        say("three replicas", first_s, agents * half)
        began = time.monotonic()
        again = asyncio.run(_with_a_kill(cluster, rows, half))
        say("the same, leader killed", time.monotonic() - began, total - agents * half)
        wait_for(lambda: served.stored() >= total, 600)
        ids = [one.id for one in Store(served.store).measurements()]
        print(
            f"stored {len(ids):,} of {total:,}, {len(ids) - len(set(ids))} twice; deliveries that "
            f"were tried again: {again}; all stored {time.monotonic() - began:.1f} s after the kill"
        )
    finally:
        cluster.stop()


async def _with_a_kill(
    cluster: Cluster, rows: Sequence[tuple[Login, Sequence[Entry]]], half: int
) -> int:
    publishing = asyncio.create_task(
        publish_all([(login, entries[half:]) for login, entries in rows])
    )
    await cluster.kill_leader()
    return await publishing


def _renamed(entry: Entry) -> Entry:
    """The same again under another id."""
    name = entry.id.encode()
    other = b"x" + name[1:]
    return Entry(
        entry.number, other.decode(), entry.samples, entry.appended_unix_ns,
        entry.payload.replace(b'"' + name + b'"', b'"' + other + b'"', 1),
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--agents", type=int, default=20)
    parser.add_argument("--each", type=int, default=500, help="measurements of each agent")
    parser.add_argument("--port", type=int, default=24_622)
    parser.add_argument("--cluster", action="store_true", help="three servers, one killed")
    wish = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="fleet-load-"))
    try:
        measure = three_servers if wish.cluster else one_server
        measure(folder, wish.agents, wish.each, wish.port)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
