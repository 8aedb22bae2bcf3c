"""Stolen credentials against a real nats-server: what each user cannot do, and that it is logged.

The server's own word for a refusal is read, and afterwards what it keeps: both must be right.
"""

import json
import ssl

import nats
import pytest
from nats.errors import Error
from tests.fleet.conftest import Served, entered, until, until_async, with_seed

from pathbudget.agents.bus.connection import connect
from pathbudget.agents.bus.login import Login
from pathbudget.agents.bus.subjects import (
    ASK,
    COLLECTOR,
    COLLECTORS,
    ENROL,
    MOST_OCTETS,
    OPERATOR,
    PLANS,
    REGISTRAR,
    RESULTS,
    RESULTS_STREAM,
    STATUS,
    inbox,
    key_subject,
    value_subject,
)
from pathbudget.agents.fleet.user_key import new_user_key
from pathbudget.probes.errors import BusError

pytestmark = pytest.mark.needs("nats-server")

THIEF, VICTIM = "thief", "victim"
KV_PLANS, KV_STATUS = f"KV_{PLANS}", f"KV_{STATUS}"
MANAGED = (
    "$JS.API.INFO",
    "$JS.API.STREAM.NAMES",
    "$JS.API.STREAM.LIST",
    f"$JS.API.STREAM.INFO.{RESULTS_STREAM}",
    f"$JS.API.STREAM.DELETE.{RESULTS_STREAM}",
    f"$JS.API.STREAM.PURGE.{RESULTS_STREAM}",
    f"$JS.API.STREAM.UPDATE.{RESULTS_STREAM}",
    "$JS.API.STREAM.CREATE.mine",
    f"$JS.API.STREAM.MSG.GET.{KV_PLANS}",
    f"$JS.API.STREAM.MSG.DELETE.{KV_PLANS}",
    f"$JS.API.STREAM.SNAPSHOT.{RESULTS_STREAM}",
    f"$JS.API.STREAM.DELETE.{KV_PLANS}",
    f"$JS.API.CONSUMER.CREATE.{RESULTS_STREAM}",
    f"$JS.API.CONSUMER.DURABLE.CREATE.{RESULTS_STREAM}.mine",
    f"$JS.API.CONSUMER.DELETE.{RESULTS_STREAM}.{COLLECTORS}",
    f"$JS.API.DIRECT.GET.{KV_PLANS}",
    f"$JS.API.DIRECT.GET.{KV_STATUS}",
)
"""What looks after streams; the last ones would read any plan by its number."""
NEXT = f"$JS.API.CONSUMER.MSG.NEXT.{RESULTS_STREAM}.{COLLECTORS}"


async def kept(fleet: Served) -> dict[str, object]:
    """Subjects and counts of all that the streams hold, and what a plan's key has."""
    async with entered(fleet.login(OPERATOR)) as operator:
        stream = operator.client.jetstream()
        found: dict[str, object] = {}
        for name in (RESULTS_STREAM, KV_PLANS, KV_STATUS):
            state = (await stream.stream_info(name, subjects_filter=">")).state
            found[name] = state.subjects or {}
        for name in (THIEF, VICTIM):
            plan = await stream.get_last_msg(KV_PLANS, key_subject(PLANS, name))
            found[f"plan of {name}"] = plan.data
        return found


@pytest.fixture
async def stolen(fleet: Served) -> Login:
    """Credentials of an agent; another one is there, and both have plans and results."""
    thief = fleet.member(THIEF)
    fleet.member(VICTIM)
    async with entered(fleet.login(OPERATOR)) as operator:
        for name in (THIEF, VICTIM):
            await operator.client.jetstream().publish(key_subject(PLANS, name), name.encode())
    return thief


async def test_an_agent_can_do_what_it_is_for(fleet: Served, stolen: Login) -> None:
    async with entered(stolen) as agent, entered(fleet.login(OPERATOR)) as operator:
        stream = agent.client.jetstream()
        first = await stream.publish(f"{RESULTS}.{THIEF}", b"{}", headers={"Nats-Msg-Id": "one"})
        again = await stream.publish(f"{RESULTS}.{THIEF}", b"{}", headers={"Nats-Msg-Id": "one"})
        assert (first.stream, first.duplicate, again.duplicate) == (RESULTS_STREAM, None, True)
        await stream.publish(key_subject(STATUS, THIEF), b"alive")
        assert (await agent.client.request(value_subject(PLANS, THIEF))).data == THIEF.encode()
        plans = await agent.client.subscribe(key_subject(PLANS, THIEF))
        asked = await agent.client.subscribe(f"{ASK}.{THIEF}")
        await agent.client.flush()
        await operator.client.jetstream().publish(key_subject(PLANS, THIEF), b"new")
        assert (await plans.next_msg(10)).data == b"new"
        reply = await operator.client.subscribe(operator.client.new_inbox())
        await operator.client.publish(f"{ASK}.{THIEF}", b"?", reply=reply.subject)
        await (await asked.next_msg(10)).respond(b"measured")
        assert (await reply.next_msg(10)).data == b"measured"
        assert not agent.said
        assert not operator.said


async def test_it_neither_speaks_as_another_nor_looks_after_streams(
    fleet: Served, stolen: Login
) -> None:
    before = await kept(fleet)
    async with entered(stolen) as thief:
        for subject in (
            f"{RESULTS}.{VICTIM}",
            RESULTS,
            key_subject(STATUS, VICTIM),
            key_subject(PLANS, THIEF),
            key_subject(PLANS, VICTIM),
            value_subject(PLANS, VICTIM),
            value_subject(STATUS, VICTIM),
            f"{ASK}.{VICTIM}",
            f"{ENROL}.{VICTIM}",
            f"{ENROL}.new",
            f"$JS.ACK.{RESULTS_STREAM}.{COLLECTORS}.1.1.1.1.1",
            NEXT,
            f"{inbox(VICTIM)}.answer",
            f"{inbox(OPERATOR)}.answer",
            "_R_.abcdef.ghijkl",
            "$SYS.REQ.SERVER.PING",
            *MANAGED,
        ):
            await thief.refused(subject, b"x", reply=f"{inbox(THIEF)}.answer")
    assert await kept(fleet) == before
    assert "Publish Violation" in fleet.server_log
    assert VICTIM in fleet.server_log


async def test_it_hears_nothing_that_is_for_others(stolen: Login) -> None:
    async with entered(stolen) as thief:
        for subject in (
            ">",
            f"{RESULTS}.>",
            f"{RESULTS}.{VICTIM}",
            f"{RESULTS}.{THIEF}",
            f"{ASK}.*",
            f"{ASK}.{VICTIM}",
            f"{ENROL}.*",
            key_subject(PLANS, "*"),
            key_subject(PLANS, VICTIM),
            key_subject(STATUS, ">"),
            f"{inbox(VICTIM)}.>",
            f"{inbox(OPERATOR)}.>",
            f"{inbox(COLLECTOR)}.>",
            "_R_.>",
            "_INBOX.>",
            "$JS.>",
            "$SYS.>",
        ):
            await thief.deaf(subject)


async def test_answers_of_the_server_go_nowhere_that_the_one_who_asked_may_not_write(
    fleet: Served, stolen: Login
) -> None:
    """A server publishes an acknowledgement or a value wherever the request wants it. With all
    users in one account this replaces the plan of another agent, puts results under its name, and
    empties the stream of results.
    """
    before = await kept(fleet)
    targets = (
        key_subject(PLANS, VICTIM),
        key_subject(STATUS, VICTIM),
        f"{RESULTS}.{VICTIM}",
        f"{ENROL}.{VICTIM}",
        f"$JS.API.STREAM.PURGE.{RESULTS_STREAM}",
        f"$JS.API.STREAM.DELETE.{KV_PLANS}",
        f"{ASK}.{VICTIM}",
    )
    async with entered(stolen) as thief:
        for target in targets:
            await thief.client.publish(f"{RESULTS}.{THIEF}", b"mine", reply=target)
            await thief.client.publish(key_subject(STATUS, THIEF), b"mine", reply=target)
            await thief.client.publish(value_subject(PLANS, THIEF), b"", reply=target)
        # acknowledged after all of those: the server has dealt with them
        await thief.client.jetstream().publish(f"{RESULTS}.{THIEF}", b"last")
        await thief.client.jetstream().publish(key_subject(STATUS, THIEF), b"last")
        await thief.client.request(value_subject(PLANS, THIEF))
    after = await kept(fleet)
    mine = f"{RESULTS}.{THIEF}"
    for stream in (RESULTS_STREAM, KV_STATUS, KV_PLANS):
        kinds = [{k: v for k, v in each[stream].items() if k != mine} for each in (before, after)]  # type: ignore[attr-defined]
        kinds[1].pop(key_subject(STATUS, THIEF), None)
        kinds[0].pop(key_subject(STATUS, THIEF), None)
        assert kinds[0] == kinds[1]
    assert after[f"plan of {VICTIM}"] == before[f"plan of {VICTIM}"] == VICTIM.encode()
    assert after[RESULTS_STREAM][mine] > len(targets)  # type: ignore[index]


async def test_a_collector_takes_results_and_changes_nothing(fleet: Served, stolen: Login) -> None:
    async with entered(stolen) as agent:
        await agent.client.jetstream().publish(f"{RESULTS}.{THIEF}", b"to be taken")
    async with entered(fleet.login(COLLECTOR)) as collector:
        for subject in (
            *(one for one in MANAGED if not one.endswith(f"STREAM.INFO.{RESULTS_STREAM}")),
            f"{RESULTS}.{VICTIM}",
            key_subject(PLANS, VICTIM),
            key_subject(STATUS, VICTIM),
            value_subject(PLANS, VICTIM),
            f"{ASK}.{VICTIM}",
            f"{ENROL}.{VICTIM}",
        ):
            await collector.refused(subject, b"x", reply=f"{inbox(COLLECTOR)}.answer")
        for subject in (f"{RESULTS}.>", f"{ENROL}.*", key_subject(PLANS, "*"), f"{ASK}.*"):
            await collector.deaf(subject)
        pull = await collector.client.jetstream().pull_subscribe_bind(
            consumer=COLLECTORS, stream=RESULTS_STREAM
        )
        (message,) = await pull.fetch(1, timeout=10)
        assert message.subject.startswith(f"{RESULTS}.")
        await message.ack_sync()


async def test_guest_and_registrar_do_one_thing_only(fleet: Served) -> None:
    ticket = fleet.invite("newcomer")
    async with entered(ticket.guest) as guest:
        for subject in (
            f"{ENROL}.{VICTIM}",
            f"{RESULTS}.newcomer",
            key_subject(STATUS, "newcomer"),
            value_subject(PLANS, "newcomer"),
            *MANAGED[:3],
        ):
            await guest.refused(subject, b"x", reply=f"{inbox('guest-newcomer')}.answer")
        for subject in (">", f"{ENROL}.*", f"{inbox('newcomer')}.>", f"{ASK}.newcomer"):
            await guest.deaf(subject)
    async with entered(fleet.login(REGISTRAR)) as registrar:
        for subject in (f"{RESULTS}.newcomer", key_subject(PLANS, VICTIM), *MANAGED):
            await registrar.refused(subject, b"x", reply=f"{inbox(REGISTRAR)}.answer")
        for subject in (f"{RESULTS}.>", key_subject(PLANS, "*"), f"{ASK}.*"):
            await registrar.deaf(subject)


async def test_a_message_that_is_too_large_ends_the_connection(
    fleet: Served, stolen: Login
) -> None:
    before = await kept(fleet)
    async with entered(stolen) as thief:
        size = MOST_OCTETS + 1
        thief.client._max_payload = size  # or our own client does not even send it
        await thief.client.publish(f"{RESULTS}.{THIEF}", bytes(size))
        await until_async(lambda: thief.client.is_closed)
        await until_async(lambda: "maximum payload" in str(thief.said))
    assert await kept(fleet) == before
    assert "maximum payload" in fleet.server_log


async def test_nobody_enters_without_a_key_of_the_registry(fleet: Served) -> None:
    login = fleet.member("known")
    with pytest.raises(BusError, match=r"(?i)authorization"):
        await connect(with_seed(login, new_user_key().seed), lambda _text: None)
    server = login.servers[0]
    for words in ({}, {"user": "operator", "password": "operator"}, {"token": "x"}):
        with pytest.raises((Error, OSError)):
            await nats.connect(
                server, tls=_context(login.authority), allow_reconnect=False, **words
            )
    assert "authentication error" in fleet.server_log


async def test_nobody_enters_in_the_clear_or_trusts_another_authority(fleet: Served) -> None:
    login = fleet.member("known")
    with pytest.raises((Error, OSError)):
        await nats.connect(
            login.servers[0].replace("tls:", "nats:"),
            nkeys_seed_str=login.seed,
            allow_reconnect=False,
            tls=_context(""),
        )


async def test_one_who_is_revoked_is_cut_off_and_stays_out(fleet: Served) -> None:
    login = fleet.member("leaver")
    async with entered(login) as agent, entered(fleet.member("stayer")) as other:
        fleet.folder.change(lambda registry: registry.revoked("leaver", 1))
        await until_async(lambda: agent.said or agent.client.is_closed)
        await other.client.jetstream().publish(f"{RESULTS}.stayer", b"still here")
        assert other.said == []
    with pytest.raises(BusError, match=r"(?i)authorization"):
        await connect(login, lambda _text: None)
    until(lambda: "authentication error" in fleet.server_log)


def _context(authority: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if authority:
        context.load_verify_locations(cadata=authority)
    return context


def test_what_the_server_publishes_of_itself_is_as_it_was_meant(fleet: Served) -> None:
    """The configuration on disk is for its owner, and has no user without rules."""
    for path in (fleet.folder.users, fleet.folder.nats / "nats-server.conf"):
        assert path.stat().st_mode & 0o777 == 0o600
    users = [line for line in fleet.folder.users.read_text().splitlines() if "nkey:" in line]
    assert len(users) >= 3
    assert all("publish: {" in line and "subscribe: {" in line for line in users)
    assert json.loads((fleet.folder.path / "fleet.json").read_text())["names"] == ["127.0.0.1"]
