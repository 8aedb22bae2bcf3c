"""exabgp as our child: against a real router, and what becomes of it."""

import asyncio
import contextlib
import importlib.metadata
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pathbudget.agents.bgp.exabgp_files import configuration
from pathbudget.agents.bgp.plans import Endpoint, SessionPlan
from pathbudget.agents.bgp.session_feed import SessionFeed, check_version
from pathbudget.probes.bgp.record import UpdateKind
from pathbudget.probes.errors import PathbudgetError

BIRD = "/usr/sbin/bird"


def plan(port: int, **more: Any) -> SessionPlan:
    listen = Endpoint("127.0.0.2", port)
    return SessionPlan(listen, "127.0.0.1", 65011, 65011, "9.9.9.9", hold_time_s=9, **more)


@pytest.mark.needs("bird")
async def test_a_session_with_bird(
    kept: Any, running: Callable[..., Any], closed_ports: tuple[int, int], tmp_path: Path
) -> None:
    port, birds_port = closed_ports
    config, control = tmp_path / "bird.conf", tmp_path / "bird.ctl"
    config.write_text(f"""router id 10.255.0.4;
protocol device {{ }}
protocol static st {{ ipv4; route 10.200.1.0/24 blackhole {{ bgp_path.prepend(65099); }}; }}
protocol bgp rc {{ local 127.0.0.1 port {birds_port} as 65011;
  neighbor 127.0.0.2 port {port} as 65011; rr client; multihop;
  connect delay time 1; connect retry time 1; error wait time 1,2;
  ipv4 {{ import none; export all; next hop self; add paths tx; }}; }}
""")
    feed = SessionFeed("edge", plan(port, add_path=True, families=("ipv4",)))
    bird = await asyncio.create_subprocess_exec(
        BIRD, "-f", "-c", str(config), "-s", str(control), "-P", str(tmp_path / "pid")
    )
    try:
        async with running(feed, kept):
            await kept.until(lambda: len(kept.updates) >= 3)
            bird.terminate()
            await kept.until(lambda: kept.updates[-1].kind is UpdateKind.PEER_DOWN)
    finally:
        if bird.returncode is None:
            bird.kill()
        await bird.wait()
    up, route, end = kept.updates[:3]
    assert (up.kind, end.kind) == (UpdateKind.PEER_UP, UpdateKind.END_OF_RIB)
    assert (route.prefix, route.as_path) == ("10.200.1.0/24", "65099")
    assert route.path_id is not None
    assert abs(route.arrived_unix_ns - time.time_ns()) < 60 * 10**9
    assert kept.news == [("connected", f"listening on 127.0.0.2:{port}")]
    assert kept.bad == 0


@pytest.mark.usefixtures("hurried")
async def test_exabgp_is_started_again_when_it_ends(
    kept: Any, running: Callable[..., Any], closed_port: int
) -> None:
    async with running(SessionFeed("edge", plan(closed_port)), kept):
        await kept.until(lambda: bool(children()))
        (first,) = children()
        os.kill(first, signal.SIGKILL)
        await kept.until(lambda: bool(children() - {first}) and len(kept.news) == 3)
    assert [kind for kind, _ in kept.news] == ["connected", "lost", "connected"]
    assert children() == set()


def children() -> set[int]:
    """Our exabgp processes."""
    found: set[int] = set()
    for path in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread that has ended
            found |= {int(word) for word in path.read_text().split()}
    return {pid for pid in found if b"exabgp" in command(pid)}


def command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def test_no_orphan_is_left_by_kill_9(tmp_path: Path, closed_port: int) -> None:
    program = f"""
import asyncio
from pathbudget.agents.bgp.plans import Endpoint, SessionPlan
from pathbudget.agents.bgp.session_feed import SessionFeed
class Quiet:
    def hear(self, updates): pass
    def connected(self, feed, detail=""): print("up", flush=True)
    def lost(self, feed, why): pass
    def set_aside(self, feed, count, why=""): pass
plan = SessionPlan(Endpoint("127.0.0.2", {closed_port}), "127.0.0.1", 1, 1, "9.9.9.9")
asyncio.run(SessionFeed("edge", plan).run(Quiet()))
"""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    parent = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, env=environment
    )
    assert parent.stdout is not None
    assert parent.stdout.readline() == b"up\n"
    folder = str(tmp_path).encode()
    wait_for(lambda: len(of_folder(folder)) >= 2)  # exabgp and what passes its lines on
    parent.kill()
    parent.wait()
    parent.stdout.close()
    wait_for(lambda: not of_folder(folder))


def of_folder(folder: bytes) -> list[int]:
    """Processes with a word of `folder` on their command line."""
    pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]
    return [pid for pid in pids if folder in command(pid)]


def wait_for(done: Callable[[], bool], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("version", ["4.2.21", "6.0.0"])
def test_other_versions_of_exabgp_are_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    def installed(_name: str) -> str:
        return version

    monkeypatch.setattr(importlib.metadata, "version", installed)
    with pytest.raises(PathbudgetError, match=f"exabgp {version} is installed and 5 is needed"):
        check_version()


def test_what_exabgp_is_told_is_passive_and_announces_nothing(tmp_path: Path) -> None:
    text = configuration(tmp_path, plan(1179, add_path=True))
    assert "passive true;" in text
    assert "family { ipv4 unicast; ipv6 unicast; }" in text
    assert "add-path receive" in text
    assert "announce" not in text
    assert "static" not in text
