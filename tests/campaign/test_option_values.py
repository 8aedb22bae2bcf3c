"""What a campaign file says of a probe: classes by name, and files beside it, looked at at once."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pathbudget.agents.campaign.campaign_file import Campaign
from pathbudget.agents.dscp import parse_dscp
from pathbudget.probes.errors import ConfigError, Fault

Load = Callable[..., Campaign]
STAMP = '\n[[probe]]\nkind = "stamp"\ninterval = "1s"\n'
TLS = '\n[[probe]]\nkind = "tls"\nlabel = "own"\ninterval = "1s"\n'


def fault_of(load: Load, append: str) -> Fault:
    with pytest.raises(ConfigError) as caught:
        load(append=append)
    (fault,) = caught.value.faults
    return fault


def write_keys(folder: Path, text: str = f"one {'ab' * 16}\n", mode: int = 0o600) -> None:
    path = folder / "stamp.keys"
    path.write_text(text)
    path.chmod(mode)


def test_a_key_file_is_looked_for_beside_the_campaign_wherever_we_are(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    write_keys(tmp_path)
    (vantage,) = load(append=STAMP + 'key_file = "stamp.keys"\n').plan.vantages
    found = {one.options["key_file"] for one in vantage.series if one.kind == "stamp"}
    assert found == {str(tmp_path / "stamp.keys")}


@pytest.mark.parametrize(
    ("options", "text", "mode", "where", "problem"),
    [
        ('key_file = "none"', "", 0o600, "key_file", "none: No such file"),
        ('key_file = "/dev/zero"', "", 0o600, "key_file", "/dev/zero: is no regular file"),
        ('key_file = "stamp.keys"', "one ab", 0o644, "key_file", "others can read it"),
        ('key_file = "stamp.keys"', "one ab", 0o600, "key_file", "stamp.keys, line 1: the key has"),
        ('key_file = "stamp.keys"\nkey_id = "two"', "", 0o600, "key_id", "has no key 'two'"),
        ('key_id = "two"', "", 0o600, "key_id", "without a key file"),
    ],
)
def test_a_wrong_key_is_a_fault_of_the_campaign_file(
    load: Load, tmp_path: Path, options: str, text: str, mode: int, where: str, problem: str
) -> None:
    write_keys(tmp_path, text or f"one {'ab' * 16}\n", mode)
    fault = fault_of(load, STAMP + options)
    assert (fault.file, fault.where) == (str(tmp_path / "campaign.toml"), f"probe[2].{where}")
    assert problem in fault.problem


@pytest.mark.parametrize("name", ["none.pem", "/dev/zero", "campaign.toml"])
def test_a_wrong_file_of_authorities_is_one_too(load: Load, name: str) -> None:
    fault = fault_of(load, TLS + f'ca_file = "{name}"\n')
    assert fault.where == "probe[2].ca_file"
    assert os.path.basename(name) in fault.problem  # noqa: PTH119


def test_a_traffic_class_may_have_its_name(load: Load) -> None:
    (vantage,) = load(append=STAMP + 'dscp = "EF"\n').plan.vantages
    assert {one.options["dscp"] for one in vantage.series if one.kind == "stamp"} == {46}
    fault = fault_of(load, STAMP + 'dscp = "fast"\n')
    assert "EF, CS0 to CS7" in fault.expected


@pytest.mark.parametrize(
    ("word", "number"),
    [("EF", 46), ("cs0", 0), ("CS7", 56), ("AF11", 10), ("af43", 38), ("63", 63), ("LE", 1)],
)
def test_classes_have_the_values_of_their_rfcs(word: str, number: int) -> None:
    assert parse_dscp(word) == number


@pytest.mark.parametrize("word", ["64", "-1", "af44", "cs8", "", "1e1", "\u0663"])
def test_what_is_no_class_is_answered_with_all_forms(word: str) -> None:
    with pytest.raises(ValueError, match="AF11 to AF43"):
        parse_dscp(word)


def test_nothing_invisible_gets_from_a_file_to_a_terminal(load: Load) -> None:
    fault = fault_of(load, STAMP + 'interface = "\\u001b[31m"\n')
    assert fault.where == "probe[2].interface"
    assert "\x1b" not in str(fault)
    assert "U+001B" in fault.problem
