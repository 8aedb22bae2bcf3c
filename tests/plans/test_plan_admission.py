"""Which plans an agent takes: whatever a broker does to them, nothing but what was signed."""

import base64
from collections.abc import Callable
from ipaddress import ip_network

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.plans.conftest import DAY, KEYS, NOW, PRIVATE, STRANGER, a_plan, a_series

from pathbudget.agents.plans.keys import key_id
from pathbudget.agents.plans.plan import LARGEST_PLAN, AgentPlan
from pathbudget.agents.plans.policy import Policy
from pathbudget.agents.plans.refusal import PlanRefusedError, RefusalReason
from pathbudget.agents.plans.signing import CONTEXT, Envelope, admit, digest, opened, sign

Take = Callable[..., AgentPlan]


def reason_of(take: Take, envelope: bytes, **values: object) -> RefusalReason:
    with pytest.raises(PlanRefusedError) as caught:
        take(envelope, **values)
    return caught.value.reason


def test_a_signed_plan_is_taken_as_it_was_signed(take: Take) -> None:
    plan = a_plan(a_series(), a_series("2001:db8::7"))
    assert take(sign(plan, PRIVATE)) == plan


def test_a_plan_without_a_signature_is_refused(take: Take) -> None:
    envelope = msgspec.json.decode(sign(a_plan(), PRIVATE), type=Envelope)
    bare = msgspec.structs.replace(envelope, signature=b"")
    assert reason_of(take, msgspec.json.encode(bare)) is RefusalReason.UNSIGNED


def test_a_key_that_is_not_trusted_signs_nothing(take: Take) -> None:
    assert reason_of(take, sign(a_plan(), STRANGER)) is RefusalReason.UNKNOWN_KEY


def test_a_stranger_cannot_sign_under_the_id_of_a_trusted_key(take: Take) -> None:
    forged = msgspec.structs.replace(
        msgspec.json.decode(sign(a_plan(), STRANGER), type=Envelope),
        key=key_id(PRIVATE.public_key()),
    )
    assert reason_of(take, msgspec.json.encode(forged)) is RefusalReason.WRONG_SIGNATURE


def test_a_signature_over_the_same_bytes_for_another_purpose_is_none(take: Take) -> None:
    payload = msgspec.json.encode(a_plan())
    assert CONTEXT
    signed_bare = Envelope(payload, key_id(PRIVATE.public_key()), PRIVATE.sign(payload))
    assert reason_of(take, msgspec.json.encode(signed_bare)) is RefusalReason.WRONG_SIGNATURE


@settings(max_examples=40)
@given(st.data())
def test_no_changed_byte_of_plan_or_signature_is_overlooked(data: st.DataObject) -> None:
    envelope = msgspec.json.decode(sign(a_plan(), PRIVATE), type=Envelope)
    field = data.draw(st.sampled_from(["plan", "signature"]))
    content = bytearray(getattr(envelope, field))
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    changed = msgspec.structs.replace(envelope, **{field: bytes(content)})
    with pytest.raises(PlanRefusedError) as caught:
        opened(msgspec.json.encode(changed), KEYS)
    assert caught.value.reason is RefusalReason.WRONG_SIGNATURE


@settings(max_examples=60)
@given(st.binary(max_size=300) | st.just(b'{"plan":"","key":1}') | st.just(b"[" * 5000))
def test_garbage_is_unreadable_and_nothing_else(garbage: bytes) -> None:
    with pytest.raises(PlanRefusedError) as caught:
        opened(garbage, KEYS)
    assert caught.value.reason in (RefusalReason.UNREADABLE, RefusalReason.UNSIGNED)


def test_a_plan_that_is_too_large_is_not_looked_into(take: Take) -> None:
    assert reason_of(take, b" " * (LARGEST_PLAN + 1)) is RefusalReason.UNREADABLE


def test_a_signed_word_that_this_version_does_not_know_is_not_left_out(take: Take) -> None:
    payload = msgspec.json.encode({**msgspec.to_builtins(a_plan()), "only_at_night": True})
    envelope = Envelope(payload, key_id(PRIVATE.public_key()), PRIVATE.sign(CONTEXT + payload))
    assert reason_of(take, msgspec.json.encode(envelope)) is RefusalReason.UNREADABLE


def test_the_plan_of_another_agent_is_refused(take: Take) -> None:
    envelope = sign(a_plan(), PRIVATE)
    assert reason_of(take, envelope, agent="dallas-2") is RefusalReason.OTHER_AGENT


@pytest.mark.parametrize("name", ["../../etc", "a.b", "a/b", "*", "", "A", "-a", "a" * 64])
def test_no_plan_is_for_an_agent_that_nothing_can_be_called(take: Take, name: str) -> None:
    envelope = sign(a_plan(agent=name), PRIVATE)
    assert reason_of(take, envelope, agent=name) is RefusalReason.UNREADABLE


def test_an_expired_plan_is_refused_from_the_very_moment(take: Take) -> None:
    envelope = sign(a_plan(), PRIVATE)
    assert take(envelope, now_unix_ns=NOW + DAY - 1).serial == 7
    assert reason_of(take, envelope, now_unix_ns=NOW + DAY) is RefusalReason.EXPIRED


def test_a_clock_that_is_a_little_behind_is_no_reason_and_one_far_behind_is(take: Take) -> None:
    envelope = sign(a_plan(), PRIVATE)
    assert take(envelope, now_unix_ns=NOW - 299_000_000_000).serial == 7
    assert reason_of(take, envelope, now_unix_ns=NOW - DAY) is RefusalReason.NOT_YET


def test_an_older_plan_is_not_played_again(take: Take) -> None:
    envelope = sign(a_plan(), PRIVATE)
    assert reason_of(take, envelope, last_serial=8) is RefusalReason.REPLAYED
    assert reason_of(take, envelope, last_serial=7) is RefusalReason.REPLAYED
    assert take(envelope, last_serial=6).serial == 7


def test_the_very_plan_that_was_taken_is_taken_after_a_restart(take: Take) -> None:
    envelope = sign(a_plan(), PRIVATE)
    assert take(envelope, last_serial=7, last_digest=digest(envelope)).seed == 7
    other = sign(a_plan(seed=8), PRIVATE)
    given = {"last_serial": 7, "last_digest": digest(envelope)}
    assert reason_of(take, other, **given) is RefusalReason.REPLAYED


def test_what_the_policy_forbids_is_told_first_and_the_rest_counted(take: Take) -> None:
    plan = a_plan(a_series("192.0.2.1"), a_series("192.0.2.2"))
    policy = Policy(do_not_probe=(ip_network("192.0.2.0/24"),))
    with pytest.raises(PlanRefusedError, match=r"192\.0\.2\.1 is on .* and 1 more"):
        take(sign(plan, PRIVATE), policy=policy)


def test_the_bytes_that_were_signed_travel_and_not_what_they_mean() -> None:
    envelope = msgspec.json.decode(sign(a_plan(), PRIVATE), type=dict[str, str])
    assert base64.b64decode(envelope["plan"]) == msgspec.json.encode(a_plan())


def test_two_trusted_keys_let_one_follow_the_other() -> None:
    keys = {**KEYS, key_id(STRANGER.public_key()): STRANGER.public_key()}
    for key in (PRIVATE, STRANGER):
        plan = admit(
            sign(a_plan(), key),
            keys=keys,
            agent="dallas-1",
            now_unix_ns=NOW,
            last_serial=None,
            policy=Policy(),
        )
        assert plan.serial == 7
