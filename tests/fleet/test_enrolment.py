"""Enrolment through a real nats-server: by the commands, and by those who should not."""

import asyncio
import os
import re
import time
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from nats.errors import Error
from tests.fleet.conftest import Served, done, entered, pathbudget, refused, until, until_async

from pathbudget.agents.bus.login import read_login
from pathbudget.agents.bus.subjects import (
    ENROL,
    MOST_OCTETS,
    OPERATOR,
    PLANS,
    RESULTS,
    RESULTS_STREAM,
    STATUS,
    key_subject,
)
from pathbudget.agents.fleet.admission import Answer, Refused, Request
from pathbudget.agents.fleet.forgetting import forget
from pathbudget.agents.fleet.invitation import Ticket, read_ticket, write_ticket
from pathbudget.agents.fleet.registry import MOST_WRONG, new_token
from pathbudget.agents.fleet.user_key import new_user_key
from pathbudget.probes.errors import BusError, ConfigError

pytestmark = pytest.mark.needs("nats-server")


async def ask(ticket: Ticket, message: bytes) -> Refused | None:
    """What the registrar says to a guest."""
    async with entered(ticket.guest) as guest:
        reply = await guest.client.request(f"{ENROL}.{ticket.agent}", message, timeout=10)
        return msgspec.json.decode(reply.data, type=Answer).refused


def request(token: str) -> bytes:
    return msgspec.json.encode(Request(token, new_user_key().public))


def test_from_an_invitation_to_a_login_by_the_commands(fleet: Served, tmp_path: Path) -> None:
    paper, login = tmp_path / "dallas.invitation.toml", tmp_path / "login.toml"
    at = ("--folder", fleet.folder.path)
    assert "for dallas, once" in done("fleet", "invite", "dallas", "--out", paper, *at)
    assert paper.stat().st_mode & 0o777 == 0o600
    assert "invited" in done("fleet", "agents", *at)
    assert "agent dallas" in done("fleet", "enrol", paper, "--out", login)
    made = read_login(login)
    assert (made.user, made.operators) == ("dallas", fleet.folder.trusted())
    assert made.seed not in (fleet.folder.path / "registry.json").read_text()
    assert re.search("^dallas +enrolled", done("fleet", "agents", *at), re.MULTILINE)
    assert '"state": "enrolled"' in done("fleet", "agents", "--format", "json", *at)
    assert "used already" in refused("fleet", "enrol", paper, "--out", tmp_path / "second.toml")
    assert "is there already" in refused("fleet", "enrol", paper, "--out", login)
    assert "--again" in refused("fleet", "invite", "dallas", "--out", tmp_path / "x.toml", *at)
    assert "refused to enrol 'dallas': used" in fleet.log
    assert "dallas is revoked." in done("fleet", "revoke", "dallas", *at)
    assert re.search("^dallas +revoked", done("fleet", "agents", *at), re.MULTILINE)
    assert not list(tmp_path.glob(".*")), "nothing half done is left"


def test_who_was_interrupted_is_the_same_agent_at_the_next_try(
    fleet: Served, tmp_path: Path
) -> None:
    paper, login = tmp_path / "paper.toml", tmp_path / "login.toml"
    write_ticket(paper, fleet.invite("patient"))
    assert pathbudget("fleet", "enrol", paper, "--out", login)[0] == 0
    login.rename(tmp_path / ".login.toml.new")  # as if it had ended before the answer came
    done("fleet", "enrol", paper, "--out", login)
    assert read_login(login).user == "patient"


async def test_a_token_is_not_guessed(fleet: Served) -> None:
    ticket = fleet.invite("guessed")
    for _ in range(MOST_WRONG - 1):
        assert await ask(ticket, request(new_token())) is Refused.WRONG_TOKEN
    async with entered(ticket.guest) as guest:
        await guest.client.publish(f"{ENROL}.guessed", request(new_token()))
        await guest.client.flush()
    until(lambda: fleet.log.count("refused to enrol 'guessed': wrong_token") == MOST_WRONG)
    until(lambda: "invitation void" in _state(fleet, "guessed"))
    with pytest.raises(BusError, match=r"(?i)authorization"):
        await ask(ticket, request(ticket.token))


async def test_garbage_and_giants_are_refused_and_the_registrar_goes_on(fleet: Served) -> None:
    ticket = fleet.invite("noisy")
    assert await ask(ticket, b"") is Refused.UNREADABLE
    assert await ask(ticket, b"\x00" * 5000) is Refused.UNREADABLE
    assert await ask(ticket, b'{"token":' + b"[" * 3000) is Refused.UNREADABLE
    assert await ask(ticket, bytes(MOST_OCTETS)) is Refused.UNREADABLE
    assert f"refused to enrol 'noisy': unreadable, {MOST_OCTETS} octets" in fleet.log
    assert await ask(ticket, request(ticket.token)) is None
    assert await ask(fleet.invite("quiet"), request(ticket.token)) is Refused.WRONG_TOKEN


async def test_a_guest_that_floods_is_cut_off_after_five(fleet: Served) -> None:
    ticket = fleet.invite("flood")
    async with entered(ticket.guest) as guest:
        with suppress(Error, TimeoutError):
            for _ in range(9):
                giant = guest.client.publish(f"{ENROL}.flood", bytes(MOST_OCTETS))
                await asyncio.wait_for(giant, 10)
        await until_async(lambda: guest.said)
    until(lambda: _state(fleet, "flood") == "invitation void")
    assert fleet.log.count("refused to enrol 'flood': unreadable") == MOST_WRONG
    assert await ask(fleet.invite("after"), b"") is Refused.UNREADABLE


async def test_an_invitation_ends_by_the_clock(fleet: Served, tmp_path: Path) -> None:
    ticket = fleet.invite("late", 2_000_000_000)
    async with entered(ticket.guest) as guest:
        await until_async(lambda: guest.client.is_closed or guest.said)
    with pytest.raises(BusError, match=r"(?i)authorization"):
        await ask(ticket, request(ticket.token))
    assert _state(fleet, "late") == "invitation expired"
    write_ticket(tmp_path / "late.toml", ticket)
    assert "has expired" in refused("fleet", "enrol", tmp_path / "late.toml")


async def test_the_guest_is_no_user_any_more_when_its_invitation_is_replaced(fleet: Served) -> None:
    ticket = fleet.invite("twice")
    newer = fleet.invite("twice")
    with pytest.raises(BusError, match=r"(?i)authorization"):
        await ask(ticket, request(ticket.token))
    assert await ask(newer, request(newer.token)) is None


async def test_what_a_revoked_agent_left_is_dropped_and_nothing_of_others(
    fleet: Served, tmp_path: Path
) -> None:
    for name in ("bad", "good"):
        async with entered(fleet.member(name)) as agent, entered(fleet.login(OPERATOR)) as operator:
            stream = agent.client.jetstream()
            for _ in range(3):
                await stream.publish(f"{RESULTS}.{name}", b"x")
            await stream.publish(key_subject(STATUS, name), b"x")
            await operator.client.jetstream().publish(key_subject(PLANS, name), b"x")
    words = ("fleet", "revoke", "bad", "--purge", "--folder", fleet.folder.path)
    assert "3 results of it" in await asyncio.to_thread(done, *words)
    async with entered(fleet.login(OPERATOR)) as operator:
        stream = operator.client.jetstream()
        for name in (RESULTS_STREAM, f"KV_{PLANS}", f"KV_{STATUS}"):
            left = (await stream.stream_info(name, subjects_filter=">")).state.subjects or {}
            kinds = {subject.rpartition(".")[2] for subject in left}
            assert "bad" not in kinds
            assert "good" in kinds
    with pytest.raises(ValueError, match="no name of an agent"):
        await forget(fleet.login(OPERATOR), "*", lambda _text: None)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('agent = "honest"', 'agent = "../../honest"', "is no name of an agent"),
        ('agent = "honest"', 'agent = "operator"', "is no name of an agent"),
        ('agent = "honest"', 'agent = "*"', "is no name of an agent"),
        ('agent = "honest"', "agent = 3", "Expected `str`"),
        ("token =", "tokens =", "unknown field"),
        ("token =", "token", "Expected"),
    ],
)
def test_an_invitation_that_was_tampered_with_is_not_used(
    fleet: Served, tmp_path: Path, old: str, new: str, why: str
) -> None:
    paper = tmp_path / "paper.toml"
    ticket = Ticket("honest", ("tls://127.0.0.1:1",), "", "", "seed", "token", 1)
    write_ticket(paper, ticket)
    assert read_ticket(paper) == ticket
    paper.write_text(paper.read_text().replace(old, new))
    assert why in refused("fleet", "enrol", paper, "--out", tmp_path / "login.toml")
    assert not (tmp_path / "login.toml").exists()


def test_an_invitation_that_lay_open_is_closed(tmp_path: Path) -> None:
    paper = tmp_path / "paper.toml"
    write_ticket(paper, Ticket("honest", ("tls://h:1",), "", "", "seed", "token", 1))
    paper.chmod(0o644)
    read_ticket(paper)
    assert paper.stat().st_mode & 0o777 == 0o600
    paper.write_bytes(os.urandom(200))
    with pytest.raises(ConfigError):
        read_ticket(paper)
    paper.write_bytes(b"a" * (2 << 20))
    with pytest.raises(ConfigError):
        read_ticket(paper)


def test_names_that_lead_out_of_the_folder_are_refused_by_each_command(
    fleet: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("../up", "/etc/passwd", "a/../b", "guest-x", "collector", "a.b", "*"):
        said = refused("fleet", "invite", name, "--folder", fleet.folder.path)
        assert "cannot be the name of an agent" in said
        assert "is not known" in refused("fleet", "revoke", name, "--folder", fleet.folder.path)
    assert not list(tmp_path.iterdir())


def _state(fleet: Served, name: str) -> str:
    return fleet.folder.registry().members[name].state(time.time_ns())
