"""Memory and processor of an agent that measures 500 series, beside fping at the same rate.

    sudo apt-get install fping nats-server
    sudo .venv/bin/python benchmarks/agent_footprint.py [--minutes 5] [--series 500] [--rate 100]
                                            [--uplink spool] [--uplink bus] [--uplink store]

ICMP, TCP connects and STAMP, a third each, to addresses of loopback: the kernel answers the echo
requests, `pathbudget reflector` the STAMP packets, a listener of this program the connects. Every
agent is a process of its own and they run one after the other; the peers are last: an asyncio loop
that wakes up at that rate and does nothing, and fping. `spool`: results are taken from the spool
and acknowledged at once; `bus`: they go over TLS to a nats-server of this host and its collector,
and a signed plan comes from there; `store`: they go into Parquet on this host.

Memory is resident (VmRSS), the largest that was seen in steady state (once a second), with what
child processes had at that moment; processor time is user + system of the agent and its children,
after the first minute, in which everything is set up.
"""

import argparse
import asyncio
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

TICKS = os.sysconf("SC_CLK_TCK")
STAMP_PORT, TCP_PORT, BUS_PORT = 18620, 18621, 18622
OPTIONS = ("--realtime", "off", "--policy", "policy.toml", "--state", "state")
KINDS = ("icmp", "tcp", "stamp")
Row = dict[str, Any]


class SpoolOnly:
    """An uplink that vouches for everything: what an agent costs without what carries results."""

    octets_at_once = 128 << 10

    async def send(self, entries: Sequence[Any]) -> Sequence[int]:
        return [entry.number for entry in entries]


def run_child(folder: Path) -> None:
    """An agent with `SpoolOnly`, in a process of its own."""
    from pathbudget.agents.daemon.running import AgentWish, run_agent
    from pathbudget.probes.scheduling import RealTime

    wish = AgentWish(
        folder / "campaign.toml",
        folder / "state",
        policy=folder / "policy.toml",
        realtime=RealTime.OFF,
    )
    run_agent(wish, SpoolOnly(), lambda text: print(text, file=sys.stderr))


async def turn(rate: float) -> None:
    """Wake up so often and do nothing: below this no program of this kind can be."""
    due = time.monotonic()
    while True:
        due += 1 / rate
        await asyncio.sleep(due - time.monotonic())


def write_plan(folder: Path, series: int, rate: float, coalesce: str) -> int:
    """Catalogue, campaign and policy; how many series there are."""
    hosts = -(-series // len(KINDS))
    lines = [
        '[[region]]\nname = "here"\nlatitude = 50.0\nlongitude = 8.0\n',
        '[[site]]\nname = "loop"\nlatitude = 50.1\nlongitude = 8.1\n',
    ]
    for number in range(hosts):
        host = f"127.1.{number // 250}.{1 + number % 250}"
        lines.append(f'[[site.target]]\nname = "t{number}"\nhost = "{host}"\n')
    (folder / "catalogue.toml").write_text("\n".join(lines))
    interval = f"{round(1000 * hosts * len(KINDS) / rate)}ms"
    probes = [
        f'[[probe]]\nkind = "{kind}"\ninterval = "{interval}"\ntimeout = "2s"\n'
        + {"tcp": f"port = {TCP_PORT}\n", "stamp": f"port = {STAMP_PORT}\n"}.get(kind, "")
        for kind in KINDS
    ]
    (folder / "campaign.toml").write_text(
        'name = "footprint"\ncatalogue = "catalogue.toml"\nduration = "10s"\nseed = 7\n'
        "[limits]\npackets_per_second = 100000\npackets_per_second_per_target = 100000\n"
        'bytes = 1_000_000_000_000\n[[vantage]]\nname = "office"\nregion = "here"\n'
        + (f'coalesce = "{coalesce}"\n' if coalesce else "")
        + "\n".join(probes)
    )
    (folder / "policy.toml").write_text(
        'allowed_networks = ["127.0.0.0/8"]\npackets_per_second = 100000\n'
        "bytes_per_day = 1_000_000_000_000\n"
    )
    return hosts * len(KINDS)


@contextlib.contextmanager
def answering() -> Generator[None]:
    """What the probes meet: a reflector, and a listener that takes connects and closes them."""
    program = str(Path(sys.executable).with_name("pathbudget"))
    command = [program, "reflector", "--listen", "0.0.0.0", "--port", str(STAMP_PORT)]
    reflector = subprocess.Popen(
        [*command, "--https-port", "0"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    listener = socket.create_server(("0.0.0.0", TCP_PORT), backlog=1024)

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                listener.accept()[0].close()

    threading.Thread(target=serve, daemon=True).start()
    try:
        time.sleep(2.0)
        yield
    finally:
        listener.close()
        reflector.terminate()
        reflector.wait(10)


def children(process: int) -> list[int]:
    """Of a process, and theirs."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{process}/task").iterdir():
            for word in (task / "children").read_text().split():
                found += [int(word), *children(int(word))]
    return found


def resident_mb(process: int) -> float:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024
    return 0.0


def cpu_s(process: int) -> tuple[float, float]:
    """Of the process, and of its children that have ended and been waited for."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    own = (int(fields[11]) + int(fields[12])) / TICKS
    return own, (int(fields[13]) + int(fields[14])) / TICKS


def watch(process: subprocess.Popen[bytes], options: argparse.Namespace) -> Row:
    """What a process uses after it has settled."""
    time.sleep(options.settle)
    seconds = options.minutes * 60
    began = time.monotonic()
    own, others = cpu_s(process.pid)
    largest = with_children = 0.0
    while (elapsed := time.monotonic() - began) < seconds:
        if process.poll() is not None:
            sys.exit(f"it ended by itself: {process.args!r}")
        mine = resident_mb(process.pid)
        largest = max(largest, mine)
        with_children = max(with_children, mine + sum(map(resident_mb, children(process.pid))))
        time.sleep(1.0)
    after, others_after = cpu_s(process.pid)
    return {
        "resident_mb": round(largest, 1),
        "with_children_mb": round(with_children, 1),
        "cpu_percent": round(100 * (after - own) / elapsed, 2),
        "children_cpu_percent": round(100 * (others_after - others) / elapsed, 2),
    }


def agent(uplink: str, folder: Path, series: int, options: argparse.Namespace) -> Row:
    program = str(Path(sys.executable).with_name("pathbudget"))
    command = {
        "spool": [sys.executable, __file__, "--child", str(folder)],
        "store": [program, "agent", "campaign.toml", *OPTIONS, "--store", "store"],
        "bus": [program, "agent", "--login", "login.toml", *OPTIONS],
    }[uplink]
    process = subprocess.Popen(command, cwd=folder)
    try:
        found = watch(process, options)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    status = json.loads((folder / "state" / "status.json").read_bytes())
    spool = status["spool"]
    failures = status.get("failures", {})
    taken = spool["acknowledged_samples"]
    return {**found, "series": series, "made": spool["made_samples"], "taken": taken,
            "failures": failures, "noise": status.get("noise")}  # fmt: skip


@contextlib.contextmanager
def fleet(folder: Path) -> Generator[None]:
    """A bus with its collector, and an agent that has been let in, with its plan: a login file."""
    program = str(Path(sys.executable).with_name("pathbudget"))

    def run(*words: str) -> None:
        subprocess.run([program, *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)

    listen = ["--listen", f"127.0.0.1:{BUS_PORT}", "--name", "127.0.0.1"]
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen(
            [program, "fleet", "serve", *listen], cwd=folder, stdout=log, stderr=log
        )
    try:
        run("plan", "keygen", "operator")
        run("plan", "sign", "campaign.toml", "--key", "operator")
        while not (folder / "pathbudget-fleet" / "operator.toml").exists():
            time.sleep(0.2)
        time.sleep(3.0)
        run("fleet", "invite", "office", "--trust", "operator.pub")
        run("fleet", "enrol", "office.invitation.toml")
        run("fleet", "push", "plans/office.plan.json", "--trust", "operator.pub")
        yield
    finally:
        server.terminate()
        server.wait(60)


def fping(folder: Path, series: int, options: argparse.Namespace) -> Row:
    """The same number of addresses at the same rate, echo requests only."""
    hosts = [f"127.2.{number // 250}.{1 + number % 250}" for number in range(series)]
    (folder / "hosts").write_text("\n".join(hosts))
    interval_ms = round(1000 / options.rate)
    command = ["fping", "-l", "-q", "-i", str(interval_ms), "-p", str(interval_ms * series)]
    with (folder / "hosts").open("rb") as file:
        process = subprocess.Popen(
            command, stdin=file, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
    try:
        return watch(process, options)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)


def empty_loop(options: argparse.Namespace) -> Row:
    """An event loop of Python that wakes up at that rate."""
    command = [sys.executable, __file__, "--empty", "--rate", str(options.rate)]
    process = subprocess.Popen(command)
    try:
        return watch(process, options)
    finally:
        process.kill()
        process.wait(30)


def main() -> None:
    parser = argparse.ArgumentParser(description="Memory and processor of an agent.")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--series", type=int, default=500)
    parser.add_argument("--rate", type=float, default=100.0, help="probes per second in all")
    parser.add_argument("--settle", type=float, default=60.0, help="seconds before it is measured")
    parser.add_argument("--coalesce", default="", help="of the vantage, such as 50ms")
    parser.add_argument("--uplink", action="append", choices=("spool", "bus", "store", "none"))
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--empty", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        run_child(Path(options.child))
        return
    if options.empty:
        asyncio.run(turn(options.rate))
    print(f"load {Path('/proc/loadavg').read_text().split()[0]} on {os.cpu_count()} cores")
    series = options.series
    with tempfile.TemporaryDirectory() as scratch, answering():
        for uplink in options.uplink or ("spool", "bus", "store"):
            if uplink == "none":
                continue
            folder = Path(scratch) / uplink
            folder.mkdir()
            series = write_plan(folder, options.series, options.rate, options.coalesce)
            with fleet(folder) if uplink == "bus" else contextlib.nullcontext():
                found = agent(uplink, folder, series, options)
            print(f"agent, {uplink}:", json.dumps(found))
        print("an empty asyncio loop:", json.dumps(empty_loop(options)))
        if shutil.which("fping"):
            print("fping:", json.dumps(fping(Path(scratch), series, options)))


if __name__ == "__main__":
    main()
