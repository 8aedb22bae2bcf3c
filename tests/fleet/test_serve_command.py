"""`pathbudget fleet serve` from outside: what it makes, survives, and refuses."""

import asyncio
import os
import signal
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fleet.conftest import (
    Served,
    done,
    entered,
    refused,
    serving,
    until,
    until_async,
)

from pathbudget.agents.bus.subjects import OPERATOR, RESULTS, RESULTS_STREAM
from pathbudget.agents.fleet.reload import running_pid
from pathbudget.probes.errors import BusError

pytestmark = pytest.mark.needs("nats-server")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A fleet of a test's own."""
    yield from serving(tmp_path)


def pid(served: Served) -> int:
    found = running_pid(served.folder.nats)
    assert found is not None
    return found


async def results(served: Served) -> int:
    async with entered(served.login(OPERATOR)) as operator:
        state = (await operator.client.jetstream().stream_info(RESULTS_STREAM)).state
        return state.messages


async def test_a_server_that_is_killed_comes_back_with_what_it_had(served: Served) -> None:
    async with entered(served.member("survivor")) as agent:
        await agent.client.jetstream().publish(f"{RESULTS}.survivor", b"kept")
        before = pid(served)
        os.kill(before, signal.SIGKILL)
        await until_async(lambda: "the bus is back" in agent.said)
        await agent.client.jetstream().publish(f"{RESULTS}.survivor", b"and more")
    assert "nats-server has ended (SIGKILL), again in 1 s" in served.log
    assert pid(served) != before
    assert await results(served) == 2


async def test_all_is_as_before_after_a_restart_and_commands_work_in_between(
    served: Served, tmp_path: Path
) -> None:
    login = served.member("early")
    async with entered(login) as agent:
        await agent.client.jetstream().publish(f"{RESULTS}.early", b"kept")
    before = {one: served.login(one) for one in ("operator", "collector", "registrar")}
    assert served.stop() == 0
    assert running_pid(served.folder.nats) is None
    at = ("--folder", served.folder.path)
    assert "does not run" in done("fleet", "revoke", "early", *at)
    done("fleet", "invite", "later", "--out", tmp_path / "later.toml", *at)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        served.start(NOTIFY_SOCKET=str(tmp_path / "notify"))
        manager.settimeout(30)
        assert manager.recv(1000).splitlines()[0] == b"READY=1"
    enrol = ("fleet", "enrol", tmp_path / "later.toml", "--out", tmp_path / "login.toml")
    await asyncio.to_thread(done, *enrol)
    assert {one: served.login(one) for one in before} == before
    assert await results(served) == 1
    with pytest.raises(BusError, match=r"(?i)authorization"):
        async with entered(login):
            pass


def test_a_server_does_not_outlive_the_one_who_started_it(served: Served) -> None:
    served.stop(signal.SIGKILL)
    until(lambda: running_pid(served.folder.nats) is None)
    served.start()


def test_two_do_not_serve_one_folder_and_a_taken_port_is_said(served: Served) -> None:
    path = served.folder.path
    assert "another `pathbudget fleet serve` runs here" in refused("fleet", "serve", path)
    port = served.folder.settings().port
    said = refused("fleet", "serve", path.with_name("other"), "--listen", f"127.0.0.1:{port}")
    assert f"127.0.0.1:{port} cannot be listened on: Address already in use" in said


def test_secrets_are_for_their_owner(served: Served) -> None:
    served.member("someone")
    open_to_all = [
        str(one.relative_to(served.folder.path))
        for one in served.folder.path.rglob("*")
        if one.is_file() and one.stat().st_mode & 0o004
    ]
    public = {"operators.pub", ".lock", ".serving", "tls/ca.pem", "tls/server.pem"}
    assert {one for one in open_to_all if not one.startswith("nats/jetstream")} <= public
    for place in (served.folder.path, served.folder.path / "tls", served.folder.nats):
        assert stat.S_IMODE(place.stat().st_mode) == 0o700


async def test_another_name_goes_into_certificate_and_logins(served: Served) -> None:
    served.stop()
    words = ["--no-collector", "--name", "127.0.0.1", "--name", "localhost"]
    again = Served(served.folder.path, *words)
    again.start()
    port = served.folder.settings().port
    login = again.login(OPERATOR)
    assert login.servers == (f"tls://127.0.0.1:{port}", f"tls://localhost:{port}")
    async with entered(login) as operator:
        assert operator.client.is_connected
    again.stop()
    served.start()
    assert served.login(OPERATOR) == login


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--listen", "nowhere:1"), "ADDRESS:PORT"),
        (("--listen", "127.0.0.1:0"), "a port of 1 to 65535"),
        (("--listen", "127.0.0.1:99999"), "a port of 1 to 65535"),
        (("--listen", "0.0.0.0:4222"), "the name by which agents reach it"),
        (("--name", "a b"), "a host name or an address"),
        (("--name", 'x" }'), "a host name or an address"),
        (("--name", "-x.org"), "a host name or an address"),
        (("--results-bytes", "3"), "1048576"),
    ],
)
def test_what_cannot_be_served_is_refused_before_anything_is_made(
    tmp_path: Path, words: tuple[str, ...], why: str
) -> None:
    assert why in refused("fleet", "serve", tmp_path / "f", *words)
    assert not (tmp_path / "f").exists()


def test_without_nats_server_the_package_to_install_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = "pathbudget.agents.fleet.server_process.SEARCH"
    monkeypatch.setattr(place, str(tmp_path))
    said = refused("fleet", "serve", tmp_path / "f")
    assert "apt-get install nats-server" in said
    (tmp_path / "nats-server").write_text("#!/bin/sh\necho nats-server: v2.8.4\n")
    (tmp_path / "nats-server").chmod(0o755)
    assert "2.9 or newer is needed" in refused("fleet", "serve", tmp_path / "f")
    assert not (tmp_path / "f").exists()


def test_an_authority_without_its_key_is_not_replaced_in_silence(served: Served) -> None:
    served.stop()
    key = served.folder.path / "tls" / "ca.key"
    before = served.folder.authority.certificate.read_bytes()
    key.rename(key.with_suffix(".away"))
    assert "has no key" in refused("fleet", "serve", served.folder.path)
    assert served.folder.authority.certificate.read_bytes() == before
    key.with_suffix(".away").rename(key)
    served.start()


def test_a_folder_that_is_no_fleets_is_left_alone(tmp_path: Path) -> None:
    for words in (("agents",), ("revoke", "a"), ("invite", "a")):
        said = refused("fleet", *words, "--folder", tmp_path)
        assert "is no folder of a fleet" in said
    assert not list(tmp_path.iterdir())
    (tmp_path / "fleet.json").write_text('{"port": "x"}')
    assert "expected what `pathbudget fleet` wrote" in refused(
        "fleet", "agents", "--folder", tmp_path
    )
