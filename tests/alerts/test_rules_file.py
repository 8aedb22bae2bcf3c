"""The file of rules: every fault in one go, secrets kept, and the example of the docs."""

import re
from pathlib import Path

import pytest

from pathbudget.agents.alerts.message import schema
from pathbudget.agents.alerts.receivers import Alertmanager, Mail, Webhook
from pathbudget.agents.alerts.rules_file import load_rules
from pathbudget.analysis.alerts.model import AlertKind
from pathbudget.analysis.alerts.rules import BudgetRule, IncidentRule
from pathbudget.analysis.routes.model import Cause
from pathbudget.probes.errors import ConfigError

DOCS = Path(__file__).resolve().parents[2] / "docs"
HOOK = '[[receiver]]\nname = "hook"\nkind = "webhook"\nurl = "https://example.org/x"\n'
RULE = '[[rule]]\nname = "r"\nkind = "agent_silent"\n'


def faults(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "rules.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_rules(path)
    return [f"{one.where}: {one.problem}" for one in caught.value.faults]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["receiver: is missing", "rule: is missing"]),
        (HOOK + RULE + "x = 1\n", ["rule[0].x: unknown key"]),
        (HOOK + RULE + 'to = ["hock"]\n', ['rule[0].to[0]: "hock" is no receiver']),
        (HOOK + RULE + RULE, ['rule[1].name: "r" is taken']),
        (HOOK + RULE.replace('"r"', '"blind"'), ['rule[0].name: "blind" is taken']),
        (HOOK + RULE.replace("agent_silent", "blind"), ['rule[0].kind: "blind" is unknown']),
        (HOOK + RULE + 'after = "1s"\n', ['rule[0].after: "1s" is out of range']),
        (HOOK + RULE + 'repeat = "2h"\nrepeat_most = "1h"\n', ["repeat_most: is shorter"]),
        (HOOK.replace("https", "ftp") + RULE, ["receiver[0].url:"]),
        (HOOK.replace("example", "user:secret@example") + RULE, ["has a user or password"]),
        (HOOK + 'secret_env = "NOT_SET_ANYWHERE"\n' + RULE, ["receiver[0].secret_env:"]),
        (HOOK + 'timeout = "5m"\n' + RULE, ["receiver[0].timeout:"]),
        (
            HOOK + '[[rule]]\nname = "l"\nkind = "budget_at_risk"\ntiers = ["chatt"]\n',
            ['rule[0].tiers[0]: "chatt" is unknown'],
        ),
        (
            HOOK
            + '[[rule]]\nname = "l"\nkind = "budget_at_risk"\n'
            + '[[rule.window]]\nlong = "5m"\nshort = "5m"\nburn_rate = 2\n',
            ["window[0].short: is not shorter"],
        ),
        (
            HOOK
            + '[[rule]]\nname = "l"\nkind = "budget_at_risk"\ntiers = ["chat"]\n'
            + '[[rule.window]]\nlong = "1h"\nshort = "5m"\nburn_rate = 20\n',
            ["window[0].burn_rate: 20 is never exceeded at p95"],
        ),
        (
            '[[receiver]]\nname = "m"\nkind = "email"\nhost = "h"\nfrom = "no address"\n'
             'recipients = ["a@b", "c"]\nuser = "u"\nsecurity = "none"\n' + RULE,
            ["receiver[0].recipients[1]:", "receiver[0].from:"],
        ),
    ],
)  # fmt: skip
def test_each_fault_is_named(tmp_path: Path, text: str, words: list[str]) -> None:
    found = faults(tmp_path, text)
    for word in words:
        assert any(word in one for one in found), found


def test_a_secret_that_others_may_read_is_refused_and_never_shown(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("the secret\n")
    secret.chmod(0o644)
    text = HOOK + 'secret_file = "secret"\n' + RULE
    assert any("open to others" in one for one in faults(tmp_path, text))
    secret.chmod(0o600)
    plan = load_rules(tmp_path / "rules.toml")
    (receiver,) = plan.receivers
    assert isinstance(receiver, Webhook)
    assert receiver.secret == "the secret"
    assert "the secret" not in repr(plan)


def test_a_password_does_not_go_in_the_clear(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAIL_PASSWORD", "x")
    text = (
        '[[receiver]]\nname = "m"\nkind = "email"\nhost = "h"\nfrom = "a@b"\nrecipients = ["a@b"]\n'
        'user = "u"\npassword_env = "MAIL_PASSWORD"\nsecurity = "none"\n' + RULE
    )
    assert any("in the clear" in one for one in faults(tmp_path, text))


def test_the_example_of_the_docs_is_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (DOCS / "alerts.md").read_text()
    (text,) = re.findall(r"```toml\n(every.*?)```", page, re.DOTALL)
    monkeypatch.setenv("HOOK_SECRET", "a secret")
    password = tmp_path / "mail.password"
    password.write_text("a password")
    password.chmod(0o600)
    path = tmp_path / "rules.toml"
    path.write_text(text)
    plan = load_rules(path)
    assert {one.kind for one in plan.rules} == set(AlertKind) - {AlertKind.BLIND}
    assert [type(one) for one in plan.receivers] == [Webhook, Alertmanager, Mail]
    (budget,) = (one for one in plan.rules if isinstance(one, BudgetRule))
    assert len(budget.windows) == 2
    (incidents,) = (one for one in plan.rules if isinstance(one, IncidentRule))
    assert Cause.FEED not in incidents.causes


def test_the_schema_of_the_docs_is_that_of_messages() -> None:
    import msgspec

    assert msgspec.json.decode((DOCS / "alerts-schema.json").read_bytes()) == schema()
