"""What a registrar answers: tokens once, for one name, in time, and not by guessing."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathbudget.agents.fleet.admission import (
    LARGEST_REQUEST,
    Answer,
    Refused,
    Request,
    answer,
)
from pathbudget.agents.fleet.registry import (
    GRACE_NS,
    MOST_WRONG,
    Invitation,
    Registry,
    new_token,
    token_hash,
)
from pathbudget.agents.fleet.user_key import is_public, new_user_key, user_key_of
from pathbudget.probes.errors import ConfigError

NOW, HOUR = 1_790_000_000_000_000_000, 3_600_000_000_000
TOKEN, KEY, GUEST = new_token(), new_user_key().public, new_user_key().public


def invited(*names: str, token: str = TOKEN) -> Registry:
    registry = Registry()
    for name in names:
        guest = GUEST if name == "dallas" else new_user_key().public
        one = Invitation(
            guest, token_hash(token if name == "dallas" else new_token()), NOW, NOW + HOUR
        )
        registry = registry.invited(name, one, again=False)
    return registry


def request(token: str = TOKEN, key: str = KEY) -> bytes:
    return msgspec.json.encode(Request(token, key))


def test_the_right_token_makes_an_agent_once() -> None:
    registry, said = answer(invited("dallas"), "dallas", request(), NOW)
    assert said.refused is None
    assert registry.members["dallas"].key == KEY
    assert registry.members["dallas"].state(NOW) == "enrolled"
    after, said = answer(registry, "dallas", request(key=new_user_key().public), NOW)
    assert said.refused is Refused.USED
    assert after.members["dallas"].key == KEY


def test_the_same_request_again_is_granted_again_for_a_minute() -> None:
    """Its answer may have been lost."""
    registry, _ = answer(invited("dallas"), "dallas", request(), NOW)
    assert answer(registry, "dallas", request(), NOW + GRACE_NS - 1) == (registry, Answer())
    assert answer(registry, "dallas", request(), NOW + GRACE_NS)[1].refused is Refused.USED


@pytest.mark.parametrize(
    ("name", "message", "when", "why"),
    [
        ("dallas", request(new_token()), NOW, Refused.WRONG_TOKEN),
        ("berlin", request(), NOW, Refused.WRONG_TOKEN),  # the token of another name
        ("paris", request(), NOW, Refused.NOT_INVITED),
        ("../etc", request(), NOW, Refused.NOT_INVITED),
        ("dallas", request(), NOW + HOUR, Refused.EXPIRED),
        ("dallas", request(key="U" + "A" * 55), NOW, Refused.BAD_KEY),
        ("dallas", request(key=KEY.lower()), NOW, Refused.BAD_KEY),
        ("dallas", request(key=f"{KEY}, permissions: {{}}"), NOW, Refused.BAD_KEY),
        ("dallas", request(key=new_user_key().seed), NOW, Refused.BAD_KEY),
        ("dallas", request(key=GUEST), NOW, Refused.BAD_KEY),
        ("dallas", b"", NOW, Refused.UNREADABLE),
        ("dallas", b"[" * 5000, NOW, Refused.UNREADABLE),
        ("dallas", b"[" * 4000, NOW, Refused.UNREADABLE),
        ("dallas", b"\xff\xfe", NOW, Refused.UNREADABLE),
        ("dallas", b'{"token": 1, "key": 2}', NOW, Refused.UNREADABLE),
        ("dallas", request()[:-1] + b',"more":1}', NOW, Refused.UNREADABLE),
        ("dallas", request() + b" " * LARGEST_REQUEST, NOW, Refused.UNREADABLE),
    ],
)
def test_what_is_wrong_is_refused_and_counted(
    name: str, message: bytes, when: int, why: Refused
) -> None:
    before = invited("dallas", "berlin")
    after, said = answer(before, name, message, when)
    assert said.refused is why
    assert not any(one.key for one in after.members.values())
    if why is not Refused.NOT_INVITED:
        invitation = after.members[name].invitation
        assert invitation is not None
        assert invitation.wrong == 1


def test_after_five_wrong_requests_even_the_right_token_is_nothing() -> None:
    registry = invited("dallas")
    for _ in range(MOST_WRONG):
        registry, said = answer(registry, "dallas", request(new_token()), NOW)
        assert said.refused is Refused.WRONG_TOKEN
    registry, said = answer(registry, "dallas", request(), NOW)
    assert said.refused is Refused.VOID
    member = registry.members["dallas"]
    assert member.invitation is not None
    assert not member.invitation.lets_in(NOW)
    assert member.state(NOW) == "invitation void"


def test_a_key_is_of_one_user_only_also_after_it_was_revoked() -> None:
    registry, _ = answer(invited("dallas"), "dallas", request(), NOW)
    registry = registry.revoked("dallas", NOW)
    assert registry.members["dallas"].state(NOW) == "revoked"
    again = Invitation(new_user_key().public, token_hash(TOKEN), NOW, NOW + HOUR)
    registry = registry.invited("dallas", again, again=False)
    registry, said = answer(registry, "dallas", request(), NOW)
    assert said.refused is Refused.BAD_KEY
    registry, said = answer(registry, "dallas", request(key=new_user_key().public), NOW)
    assert said.refused is None


def test_a_replaced_host_takes_over_when_it_is_enrolled_and_not_before() -> None:
    registry, _ = answer(invited("dallas"), "dallas", request(), NOW)
    other, token = new_user_key().public, new_token()
    one = Invitation(new_user_key().public, token_hash(token), NOW, NOW + HOUR)
    with pytest.raises(ConfigError, match="--again"):
        registry.invited("dallas", one, again=False)
    registry = registry.invited("dallas", one, again=True)
    assert registry.members["dallas"].key == KEY
    assert registry.members["dallas"].state(NOW) == "enrolled, invited"
    registry, said = answer(registry, "dallas", request(token, other), NOW)
    assert (said.refused, registry.members["dallas"].key) == (None, other)
    assert KEY in registry.retired


@pytest.mark.parametrize(
    "name",
    [
        *("", "..", "../../etc/passwd", "a/b", "a.b", "a b", "*", ">", "A", "-a", "a" * 64, "ä"),
        *("a\n", "operator", "collector", "registrar", "guest-dallas"),
    ],
)
def test_nobody_is_invited_under_a_name_that_means_something_else(name: str) -> None:
    one = Invitation(GUEST, token_hash(TOKEN), NOW, NOW + HOUR)
    with pytest.raises(ConfigError, match="cannot be the name"):
        Registry().invited(name, one, again=False)


@given(message=st.binary(max_size=300), name=st.sampled_from(["dallas", "berlin", "nobody"]))
def test_garbage_makes_no_agent(message: bytes, name: str) -> None:
    after, said = answer(invited("dallas"), name, message, NOW)
    assert said.refused is not None
    assert not after.members["dallas"].key


def test_a_registry_comes_back_as_it_was_written() -> None:
    registry, _ = answer(invited("dallas", "berlin"), "dallas", request(), NOW)
    registry = registry.revoked("berlin", NOW)
    assert msgspec.json.decode(msgspec.json.encode(registry), type=Registry) == registry
    assert TOKEN not in msgspec.json.encode(registry).decode()


@given(st.text(alphabet="UA234567BCDEFGHIJKLMNOPQRSTVWXYZ", min_size=54, max_size=57))
def test_a_public_key_has_a_checksum(text: str) -> None:
    assert not is_public(text)


def test_a_seed_gives_its_public_key_and_no_other_seed_does() -> None:
    key = new_user_key()
    assert user_key_of(key.seed) == key
    assert is_public(key.public)
    for wrong in ("", "SU", key.public, key.seed[:-1], key.seed.replace("U", "A", 1)):
        with pytest.raises(ValueError, match="seed"):
            user_key_of(wrong)
