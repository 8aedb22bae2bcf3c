"""What a campaign file says of a probe: classes by name, and files beside it, looked at at once."""

import os
import sys
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


FAULTY = {
    "http": [
        ('path = "ping"', "path"),
        ('headers = "host: x"', "headers"),
        ('groups = "foo"', "groups"),
        ('version = "3"\nscheme = "http"', "scheme"),
        ('mode = "early_data"\nmethod = "POST"', "method"),
        ("body_bytes = 10", "body_bytes"),
        ("expect_status = 42", "expect_status"),
        ("expect_status = 99", "expect_status"),
        ('authorization_file = "none"', "authorization_file"),
        ('client_key = "campaign.toml"', "client_key"),
        ('version = "3"\nca_file = "none.pem"', "ca_file"),
        ('version = "3"\nclient_certificate = "campaign.toml"', "client_certificate"),
        ('client_certificate = "/dev/zero"', "client_certificate"),
        ('library = "ssl"\nmode = "early_data"', "library"),
    ],
    "dns": [
        ('type = "XYZ"', "type"),
        ('name = "a..b"', "name"),
        ('client_subnet = "300.1.1.1/8"', "client_subnet"),
        ('transport = "doh"\nmode = "early_data"', "mode"),
        ('transport = "dot"\ngroups = "foo"', "groups"),
        ('source = "here"', "source"),
    ],
    "token_stream": [
        ('form = "websocket"\nversion = "2"', "version"),
        ('token_file = "none"', "token_file"),
        ('token_file = "/dev/zero"', "token_file"),
    ],
    "completion": [
        ('prompt_column = "tokens"', "prompt_column"),
        ('prompt_file = "none"', "prompt_file"),
        ('prompt_file = "campaign.toml"', "prompt_file"),
        ('api_key_file = "none"', "api_key_file"),
        ("prompt_tokens = 500\nprompt_most = 100", "prompt_tokens"),
        ('path = "v1"', "path"),
    ],
    "upload": [
        ('congestion = "nosuch"', "congestion"),
        ('path = "x"', "path"),
        ('congestion = "reno"\nversion = "3"', "congestion"),
        ("tokens = 2_000_000\nbytes_per_token = 60.0", "tokens"),
        ('groups = "foo"', "groups"),
    ],
    "tls": [('groups = "foo"', "groups"), ('client_certificate = "none"', "client_certificate")],
    "quic": [
        ('mode = "early_data"\nalpn = "h4"', "alpn"),
        ('mode = "early_data"\nearly_path = "ping"', "early_path"),
        ('ca_file = "campaign.toml"', "ca_file"),
    ],
    "tcp": [('method = "syn"\necho_bytes = 8', "echo_bytes"), ('source = "here"', "source")],
    "stamp": [("size = 20", "size"), ('source = "here"', "source")],
    "icmp": [('source = "here"', "source")],
}
CASES = [(kind, text, option) for kind, cases in FAULTY.items() for text, option in cases]


@pytest.mark.parametrize(("kind", "text", "option"), CASES)
def test_what_a_probe_would_refuse_is_a_fault_of_the_file(
    load: Load, tmp_path: Path, kind: str, text: str, option: str
) -> None:
    entry = f'\n[[probe]]\nkind = "{kind}"\nlabel = "own"\ninterval = "60s"\n{text}\n'
    fault = fault_of(load, entry)
    assert (fault.file, fault.where) == (
        str(tmp_path / "campaign.toml"),
        f"probe[2].{option}",
    )


def test_no_fault_of_a_probe_hides_another(load: Load) -> None:
    entry = """
    [[probe]]
    kind = "http"
    interval = "1s"
    port = 0
    ca_file = "none.pem"
    path = "ping"
    mood = "cold"
    headers = "host: x"
    groups = "foo"
    [[probe]]
    kind = "dns"
    interval = "1s"
    dscp = "ZZ"
    source = "a\\u0007"
    type = "XYZ"
    name = "a..b"
    [[probe]]
    kind = "dns"
    label = "again"
    interval = "1s"
    sites = ["stemons"]
    client_subnet = "300.1.1.1/8"
    """
    with pytest.raises(ConfigError) as caught:
        load(('kind = "icmp"\ninterval = "250ms"', 'kind = "icmp"\ninterval = "1ms"'), append=entry)
    places = [fault.where for fault in caught.value.faults]
    assert sorted(places) == [
        "limits.packets_per_second",
        *3 * ["limits.packets_per_second_per_target"],
        "probe[2].ca_file",
        "probe[2].groups",
        "probe[2].headers",
        "probe[2].mood",
        "probe[2].path",
        "probe[2].port",
        "probe[3].dscp",
        "probe[3].name",
        "probe[3].source",
        "probe[3].type",
        "probe[4].client_subnet",
        "probe[4].sites[0]",
    ]


def test_files_of_every_option_are_looked_for_beside_the_campaign(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    (tmp_path / "token").write_text("a-secret-word")
    entry = '[[probe]]\nkind = "token_stream"\ninterval = "60s"\ntoken_file = "token"\n'
    (vantage,) = load(append=entry).plan.vantages
    found = {one.options["token_file"] for one in vantage.series if one.kind == "token_stream"}
    assert found == {str(tmp_path / "token")}


def test_what_needs_a_library_that_is_missing_is_left_to_the_opening(
    load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OpenSSL", "aioquic", "dns", "cryptography"):
        monkeypatch.setitem(sys.modules, name, None)
    ours = ("tls.openssl", "quic.verifying", "dns.questions")
    for name in [name for name in sys.modules if name.startswith(_under(ours))]:
        monkeypatch.delitem(sys.modules, name)
    entry = '[[probe]]\nkind = "{}"\nlabel = "{}"\ninterval = "60s"\n{}\n'
    text = [
        entry.format("http", "one", 'groups = "foo"'),
        entry.format("dns", "two", 'name = "a..b"'),
        entry.format("quic", "three", 'ca_file = "campaign.toml"'),
        entry.format("tls", "four", 'ca_file = "campaign.toml"'),
    ]
    fault = fault_of(load, "\n" + "".join(text))
    assert fault.where == "probe[5].ca_file"


def _under(modules: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"pathbudget.probes.{module}" for module in modules)
