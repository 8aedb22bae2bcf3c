"""The policy file: what it may say, and what is told of everything else."""

from pathlib import Path

import pytest

from pathbudget.agents.gate_files import read_policy
from pathbudget.analysis.gate.policy import Policy, Severity, Treatment
from pathbudget.analysis.gate.policy_file import parse_policy
from pathbudget.analysis.gate.toml_lines import key_lines
from pathbudget.analysis.report.selection import Sites
from pathbudget.analysis.results import Carrier, Mode
from pathbudget.probes.errors import ConfigError

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "gate"

WHOLE = """
schema = 1
tiers = ["voice-ai", "chat"]
regions = ["us-south"]
sites = ["dallas", "frankfurt"]
modes = ["warm", "cold"]
transports = ["quic"]
prompts = [800]
percentiles = [95, 99.9]
undecided = "fail"
not_measured = "pass"
whole = true
siting = true

[regression]
tolerance_ms = 0.5
simultaneous = false

[tier.voice-ai]
severity = "warning"
allowance_ms = 30
allowances_ms = { p99 = 60, "p99.9" = 90 }
target_ms = 450
undecided = "pass"
tolerance_ms = 2
expected_sites = ["dallas"]
"""


def test_everything_that_can_be_said() -> None:
    policy = parse_policy(WHOLE)
    assert policy.tiers == ("voice-ai", "chat")
    assert policy.sites == ("dallas", "frankfurt")
    assert policy.which is Sites.ALL
    assert policy.modes == (Mode.WARM, Mode.COLD)
    assert policy.transports == (Carrier.QUIC,)
    assert policy.percentiles == (95.0, 99.9)
    assert (policy.undecided, policy.not_measured) == (Treatment.FAIL, Treatment.PASS)
    assert (policy.tolerance_ms, policy.simultaneous) == (0.5, False)
    assert policy.whole is policy.siting is True
    rules = policy.tier["voice-ai"]
    assert rules.severity is Severity.WARNING
    assert rules.allowances_ms == {"p99": 60.0, "p99.9": 90.0}
    assert rules.expected_sites == ("dallas",)


def test_an_empty_file_is_the_gate_without_a_file() -> None:
    empty = parse_policy("", "x.toml")
    assert empty == Policy(file="x.toml")
    assert empty.undecided is Treatment.MEASURE_MORE


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            '\ntier_s = ["x"]',
            'line 2, tier_s: unknown key "tier_s"; expected "tiers" (did you mean',
        ),
        ("[regressions]", 'line 1, regressions: unknown key "regressions"; expected "regression"'),
        ("[tier.x]\nseverety = 1", 'line 2, tier.x.severety: unknown key "severety"'),
        ('[tier."a b"]\n\nalowance_ms = 1', "line 3, tier.a b.alowance_ms: unknown key"),
        ('undecided = "warn"', 'line 1, undecided: "warn" is unknown; expected one of pass, fail'),
        ('undecided = "measure_more"', 'expected "measure-more" (did you mean that?)'),
        ("tiers = []", "line 1, tiers: is empty, and would check nothing"),
        ('tiers = "voice-ai"', "is no list"),
        ("modes = [\n 'worm']", 'line 1, modes[0]: "worm" is unknown; expected "warm"'),
        ("percentiles = [100]", "100 is out of range"),
        ("percentiles = [0.95, true]", "true is no number"),
        ("prompts = [1.5]", "1.5 has a fraction"),
        ("whole = 1", "1 is neither; expected true or false"),
        ("[regression]\ntolerance_ms = -1", "line 2, regression.tolerance_ms: -1 is out of range"),
        ("[tier.x]\nallowance_ms = 0", "line 2, tier.x.allowance_ms: 0 is out of range"),
        ("[tier.x]\nallowances_ms = {x5 = 1}", 'line 2, tier.x.allowances_ms.x5: "x5" is no perc'),
        ("[tier.x]\nallowances_ms = {p100 = 1}", '"p100" is no percentile'),
        ('[tier.x]\nallowances_ms = {p95 = 40, "p95.0" = 30}', "a second allowance of p95"),
        ("tier = 3", "3 is no table"),
        ("schema = 2", "line 1, schema: 2 is not known"),
        ('sites = "al"', 'expected "all" (did you mean that?)'),
        ("tiers = [", "not TOML"),
        ("a = 1\na = 2", "not TOML"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(text: str, told: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_policy(text, "gate.toml")
    assert told in str(error.value)
    assert str(error.value).startswith("gate.toml: ")


def test_all_faults_come_in_one_go() -> None:
    with pytest.raises(ConfigError) as error:
        parse_policy('tierz = 1\nundecided = "x"\n[regression]\ntolerance = 1\n[tier.a]\nmode = 1')
    assert len(error.value.faults) == 4


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        read_policy(tmp_path / "none.toml")


def test_a_policy_with_a_byte_order_mark_and_letters_of_any_script(tmp_path: Path) -> None:
    path = tmp_path / "策略.toml"
    path.write_bytes('\ufeff[tier."東京"]\nseverity = "note"\n'.encode())
    assert read_policy(path).tier["東京"].severity is Severity.NOTE


def test_lines_of_keys() -> None:
    text = 'a = 1\n"b c" = 2 # x = 3\n[t.u]\n d.e = [\n "x = 1",\n]\n[[v]]\nw = """\nx = 1"""\n'
    lines = key_lines(text)
    assert lines["a"] == 1
    assert lines["b c"] == 2
    assert lines["t.u"] == 3
    assert lines["t.u.d.e"] == 4
    assert lines["v"] == 7
    assert lines["v.w"] == 8


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.name)
def test_the_examples_are_right(path: Path) -> None:
    assert read_policy(path).file == str(path)
