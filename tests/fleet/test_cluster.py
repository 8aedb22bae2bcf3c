"""A bus of three servers on three ports of loopback: made by the command, one of them killed."""

import asyncio
import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from nats.errors import Error
from nats.js import JetStreamContext
from nats.js.errors import Error as StreamError
from tests.fleet.cluster_run import Cluster
from tests.fleet.conftest import Guest, done, entered, refused, until, until_async
from tests.programs import program

from pathbudget.agents.bus.subjects import (
    ASK,
    OPERATOR,
    PLANS,
    RESULTS,
    RESULTS_STREAM,
    key_subject,
    value_subject,
)
from pathbudget.agents.plans.keys import generate

pytestmark = pytest.mark.needs("nats-server")

BEFORE, AFTER = 20, 20


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    try:
        yield made
    finally:
        made.stop()


async def published(stream: JetStreamContext, number: int) -> None:
    """As an agent does it: again until it is acknowledged, with the same id."""
    async with asyncio.timeout(60):
        while True:
            with suppress(Error, StreamError, TimeoutError, asyncio.TimeoutError):
                await stream.publish(
                    f"{RESULTS}.nomad", b"{}", timeout=2, headers={"Nats-Msg-Id": str(number)}
                )
                return
            await asyncio.sleep(0.1)


async def plan_of(agent: Guest) -> bytes:
    """As an agent reads it, again and again: a server may be away, or behind the others."""
    async with asyncio.timeout(60):
        while True:
            with suppress(Error, TimeoutError):
                found = await agent.client.request(value_subject(PLANS, "nomad"), timeout=2)
                if "Nats-Sequence" in (found.headers or {}):
                    return found.data
            await asyncio.sleep(0.1)


async def test_publishing_goes_on_when_one_of_three_servers_is_killed(
    cluster: Cluster, tmp_path: Path
) -> None:
    for folder in cluster.folders:
        words = [program("nats-server"), "-t", "-c", "nats-server.conf"]
        await asyncio.to_thread(subprocess.run, words, cwd=folder, check=True)
        assert {one.stat().st_mode & 0o077 for one in folder.glob("*.key")} == {0}
    cluster.served.start()
    generate(tmp_path / "operator", tmp_path / "operator.pub")
    cluster.served.folder.trust(tmp_path / "operator.pub")
    at = ("--folder", cluster.served.folder.path)
    paper, login = tmp_path / "paper.toml", tmp_path / "nomad.login.toml"
    await asyncio.to_thread(done, "fleet", "invite", "nomad", "--out", paper, *at)
    until(lambda: all("enrol.nomad" in users.read_text() for users in cluster.users))
    await asyncio.to_thread(done, "fleet", "enrol", paper, "--out", login)
    login.rename(cluster.served.folder.path / "nomad.login.toml")
    nomad = cluster.served.member("nomad")
    assert len(nomad.servers) == 3
    async with entered(nomad) as agent, entered(cluster.served.login(OPERATOR)) as operator:
        stream = operator.client.jetstream()
        for name in (RESULTS_STREAM, f"KV_{PLANS}"):
            assert (await stream.stream_info(name)).config.num_replicas == 3
        await stream.publish(key_subject(PLANS, "nomad"), b"plan")
        assert await plan_of(agent) == b"plan"
        asked = await agent.client.subscribe(f"{ASK}.nomad")
        await agent.client.flush()
        for number in range(BEFORE):
            await published(agent.client.jetstream(), number)
        found = await stream.stream_info(RESULTS_STREAM)
        assert found.cluster is not None
        cluster.kill(str(found.cluster.leader))
        for number in range(BEFORE, BEFORE + AFTER):
            await published(agent.client.jetstream(), number)
        await until_async(lambda: operator.client.is_connected)
        async with asyncio.timeout(60):
            while True:
                with suppress(Error, StreamError, TimeoutError, asyncio.TimeoutError):
                    state = (await stream.stream_info(RESULTS_STREAM)).state
                    break
        assert state.messages == BEFORE + AFTER
        assert await plan_of(agent) == b"plan"
        answers = await operator.client.subscribe(operator.client.new_inbox())
        await operator.client.publish(f"{ASK}.nomad", b"?", reply=answers.subject)
        await (await asked.next_msg(30)).respond(b"measured")
        assert (await answers.next_msg(30)).data == b"measured"


def test_routes_want_a_certificate_of_the_fleet_and_the_password(cluster: Cluster) -> None:
    """A stranger on the port of the routes is no server of this cluster."""
    until(lambda: all("Server is ready" in cluster.log(one) for one in cluster.servers))
    node = cluster.folders[0]
    text = (node / "nats-server.conf").read_text()
    route = text.split("cluster {")[1].split('listen: "127.0.0.1:')[1].split('"')[0]
    said = subprocess.run(
        [program("openssl"), "s_client", "-connect", f"127.0.0.1:{route}", "-quiet"],
        input=b"INFO {}\r\n",
        capture_output=True,
        timeout=30,
        check=False,
        env={**os.environ, "OPENSSL_CONF": "/dev/null"},
    )
    assert said.returncode != 0 or b"alert" in said.stderr
    until(lambda: "TLS route handshake error" in cluster.log(node.name))


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("a", "b"), "2 are named"),
        (("a", "b", "c", "d"), "4 are named"),
        (("a", "a", "b"), "is twice"),
        (("a:1:1", "b", "c"), "is twice"),
        (("a/b", "b", "c"), "HOST, HOST:PORT"),
        (("../a", "b", "c"), "HOST, HOST:PORT"),
        (('a" }', "b", "c"), "HOST, HOST:PORT"),
        (("a:70000", "b", "c"), "ports of 1 to 65535"),
        (("a:65000", "b", "c"), "ports of 1 to 65535"),
    ],
)
def test_what_makes_no_cluster_is_refused(tmp_path: Path, words: tuple[str, ...], why: str) -> None:
    assert why in refused("fleet", "cluster", *words, "--out", tmp_path / "f")
    assert not (tmp_path / "f").exists()


def test_a_cluster_is_not_made_over_a_fleet(tmp_path: Path) -> None:
    words = ("fleet", "cluster", "a", "b", "2001:db8::1".join("[]"), "--out", tmp_path / "f")
    said = done(*words)
    assert f"fleet serve {tmp_path / 'f'}" in said
    assert "has a fleet already" in refused(*words)
    servers = (tmp_path / "f" / "operator.toml").read_text()
    assert '"tls://a:4222", "tls://b:4222", "tls://[2001:db8::1]:4222"' in servers
    carry = tmp_path / "f" / "carry-users"
    assert carry.stat().st_mode & 0o777 == 0o700
    assert subprocess.run(["/bin/sh", "-n", carry], check=False).returncode == 0
