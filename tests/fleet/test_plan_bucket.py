"""Signed plans on their way through the bus: `fleet push` and `fleet plans`."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from tests.fleet.conftest import Served, done, entered, refused
from tests.plans.conftest import PRIVATE, STRANGER, a_plan

from pathbudget.agents.bus.subjects import OPERATOR, PLANS, key_subject, value_subject
from pathbudget.agents.plans.plan import LARGEST_PLAN
from pathbudget.agents.plans.signing import Envelope, sign

pytestmark = pytest.mark.needs("nats-server")


def signed(place: Path, agent: str, serial: int = 7) -> Path:
    path = place / f"{serial}.plan.json"
    path.write_bytes(sign(a_plan(agent=agent, serial=serial), PRIVATE))
    return path


def at(fleet: Served) -> Sequence[object]:
    return ("--login", fleet.folder.login_file(OPERATOR))


async def test_a_plan_that_is_pushed_is_what_its_agent_gets(fleet: Served, tmp_path: Path) -> None:
    path = signed(tmp_path, "reader")
    async with entered(fleet.member("reader")) as agent:
        watch = await agent.client.subscribe(key_subject(PLANS, "reader"))
        await agent.client.flush()
        said = await asyncio.to_thread(done, "fleet", "push", path, *at(fleet))
        assert "reader  serial 7, 1 series" in said
        assert (await watch.next_msg(10)).data == path.read_bytes()
        got = await agent.client.request(value_subject(PLANS, "reader"))
        assert got.data == path.read_bytes()
    said = await asyncio.to_thread(done, "fleet", "plans", *at(fleet))
    assert "reader" in said
    assert "serial 7, 1 series" in said
    rows = json.loads(await asyncio.to_thread(done, "fleet", "plans", "--format=json", *at(fleet)))
    assert [row["serial"] for row in rows if row["agent"] == "reader"] == [7]


def test_an_older_plan_does_not_replace_a_newer_one(fleet: Served, tmp_path: Path) -> None:
    done("fleet", "push", signed(tmp_path, "steady", 9), *at(fleet))
    said = refused("fleet", "push", signed(tmp_path, "steady", 8), *at(fleet))
    assert "serial 8 after 9" in said
    done("fleet", "push", signed(tmp_path, "steady", 9), *at(fleet))


def test_with_trusted_keys_only_their_plans_are_pushed(fleet: Served, tmp_path: Path) -> None:
    path, keys = signed(tmp_path, "picky"), tmp_path.parent / "picky.pub"
    from cryptography.hazmat.primitives import serialization

    pem = (serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    keys.write_bytes(STRANGER.public_key().public_bytes(*pem))
    assert "unknown_key" in refused("fleet", "push", path, "--trust", keys, *at(fleet))
    keys.write_bytes(PRIVATE.public_key().public_bytes(*pem))
    done("fleet", "push", path, "--trust", keys, *at(fleet))


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "no envelope"),
        (b"\xff", "no envelope"),
        (b"[" * 100_000, "no envelope"),
        (b'{"plan":"e30=","key":"x","signature":""}', "no envelope"),
        (msgspec.json.encode(Envelope(b"{}", "key", b"x")), "no envelope"),
        (b" " * (LARGEST_PLAN + 1), "is larger"),
        *(
            (sign(a_plan(agent=name), PRIVATE), "no name of an agent")
            for name in ("../../etc", "a.b", "*", ">", "", "operator", "guest-a")
        ),
    ],
)
def test_what_is_no_plan_of_an_agent_is_not_pushed_and_nothing_else_is(
    fleet: Served, tmp_path: Path, content: bytes, why: str
) -> None:
    good, bad = signed(tmp_path, "beside"), tmp_path / "bad.plan.json"
    bad.write_bytes(content)
    assert why in refused("fleet", "push", good, bad, *at(fleet))
    assert "beside" not in done("fleet", "plans", *at(fleet))


async def test_a_key_that_holds_no_plan_is_listed_as_such(fleet: Served) -> None:
    async with entered(fleet.login(OPERATOR)) as operator:
        await operator.client.jetstream().publish(key_subject(PLANS, "odd"), b"no plan")
    said = await asyncio.to_thread(done, "fleet", "plans", *at(fleet))
    assert "odd" in said
    assert "unreadable" in said


def test_others_than_the_operator_neither_push_nor_list(fleet: Served, tmp_path: Path) -> None:
    path = signed(tmp_path, "anyone")
    login = ("--login", fleet.folder.login_file("collector"))
    said = refused("fleet", "push", path, *login)
    assert "permissions violation" in said
    assert "cannot be put" in said
    assert "cannot be read" in refused("fleet", "plans", "--login", tmp_path / "none.toml")
