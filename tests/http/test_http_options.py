"""What cannot be measured is said before anything is sent; what is secret is never said."""

import sys
from pathlib import Path
from typing import Any

import pytest

from pathbudget.probes.contract import Options
from pathbudget.probes.errors import ConfigError
from pathbudget.probes.fake_collector import Collector, shot_at
from pathbudget.probes.fake_network import FakeNetwork
from pathbudget.probes.http.plan import OPTIONS, Plan, make_plan
from pathbudget.probes.http.probe import HTTP
from pathbudget.probes.http.settings import transport_of
from pathbudget.probes.record import Transport
from pathbudget.probes.table import check_options

SECRET = "hunter2hunter2"


def plan(**options: Any) -> Plan:
    defaults = {name: spec.default for name, spec in OPTIONS.items()}
    return make_plan({**defaults, **options}, bytes)


@pytest.fixture
def secret_file(tmp_path: Path) -> str:
    file = tmp_path / "secret"
    file.write_text(f"{SECRET}\n")
    return str(file)


WRONG: dict[str, tuple[Options, str]] = {
    "version-3-without-tls": ({"version": "3", "scheme": "http"}, "scheme"),
    "tickets-without-tls": ({"mode": "resumed", "scheme": "http"}, "mode"),
    "early-data-without-tls": ({"mode": "early_data", "scheme": "http"}, "mode"),
    "groups-of-version-3": ({"version": "3", "groups": "X25519"}, "groups"),
    "library-of-version-3": ({"version": "3", "library": "ssl"}, "library"),
    "body-of-get": ({"body_bytes": 10}, "body_bytes"),
    "replayed-post": ({"mode": "early_data", "method": "POST"}, "method"),
    "nothing-to-compare": ({"compare_credentials": True, "mode": "warm"}, "compare_credentials"),
    "status-below-100": ({"expect_status": 42}, "expect_status"),
    "path-with-space": ({"path": "/a b"}, "path"),
    "path-with-line-end": ({"path": "/a HTTP/1.1\r\nx: y"}, "path"),
    "header-without-colon": ({"headers": "accept"}, "headers"),
    "header-that-frames": ({"headers": "content-length: 5"}, "headers"),
    "secret-in-the-open": ({"headers": f"authorization: {SECRET}"}, "headers"),
    "no-such-file": ({"authorization_file": "/nowhere/at/all"}, "authorization_file"),
}


@pytest.mark.parametrize("name", WRONG)
def test_options_that_do_not_go_together(name: str) -> None:
    options, where = WRONG[name]
    with pytest.raises(ConfigError) as caught:
        plan(**options)
    assert where in {fault.where for fault in caught.value.faults}
    assert SECRET not in str(caught.value)


def test_every_fault_is_told_at_once(secret_file: str) -> None:
    with pytest.raises(ConfigError) as caught:
        plan(
            path="x",
            headers="host: x | b",
            authorization_file=secret_file,
            compare_credentials=True,
            scheme="http",
            mode="resumed",
        )
    places = [fault.where for fault in caught.value.faults]
    assert sorted(places) == ["headers", "headers", "mode", "mode", "path"]


@pytest.mark.parametrize(
    "content", ["", "a\r\nb: c", "x" * 9_000, "\0", "two\nlines"],
    ids=["empty", "injection", "long", "nul", "lines"],
)  # fmt: skip
def test_a_file_that_holds_no_credentials(tmp_path: Path, content: str) -> None:
    file = tmp_path / "secret"
    file.write_text(content)
    with pytest.raises(ConfigError) as caught:
        plan(authorization_file=str(file))
    assert "holds no value of a header" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "value"),
    [(SECRET, f"Bearer {SECRET}"), (f"Basic {SECRET}=\n", f"Basic {SECRET}=")],
)
def test_credentials_come_from_a_file(tmp_path: Path, content: str, value: str) -> None:
    file = tmp_path / "secret"
    file.write_text(content)
    found = plan(authorization_file=str(file))
    assert ("authorization", value) in found.request("a").headers
    assert all(name != "authorization" for name, _ in found.request("a", anonymous=True).headers)


def test_headers_have_defaults_and_can_hold_what_headers_hold() -> None:
    found = dict(plan(headers="Accept: a;q=0.5, b:c |d | x-e: f").request("a").headers)
    assert found == {"user-agent": "pathbudget", "accept": "a;q=0.5, b:c |d", "x-e": "f"}


@pytest.mark.parametrize("word", ["http://proxy:3128", "environment"])
def test_no_proxy_is_ever_used(word: str) -> None:
    _, faults = check_options(HTTP, {"proxy": word}, "campaign.toml", "probe[0]")
    assert [fault.expected for fault in faults] == ["one of none"]


def test_what_is_in_the_environment_changes_nothing(
    fake: FakeNetwork, fake_collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://192.0.2.99:3128")
    fake_collector.open(HTTP, {"scheme": "http"}).fire(shot_at("192.0.2.1", port=80))
    fake.clock.advance(10)
    assert set(fake.paths) == {"192.0.2.1"}


@pytest.mark.parametrize(
    ("options", "transport"),
    [({}, Transport.TLS), ({"version": "2"}, Transport.TLS), ({"version": "3"}, Transport.QUIC),
     ({"scheme": "http"}, Transport.TCP)],
)  # fmt: skip
def test_what_carries_the_requests(options: Options, transport: Transport) -> None:
    assert transport_of(options) is transport


def test_the_cost_bounds_what_is_sent_and_taken() -> None:
    defaults = {name: spec.default for name, spec in OPTIONS.items()}
    one = HTTP.cost(defaults)
    assert 1 << 16 < one.bytes < 1 << 17
    assert HTTP.cost({**defaults, "answer_bytes": 1_000}).bytes < 40_000
    two = HTTP.cost({**defaults, "compare_credentials": True})
    assert two.bytes - one.bytes > 1 << 16


@pytest.mark.parametrize(("version", "library"), [("1.1", "h11"), ("2", "h2"), ("3", "aioquic")])
def test_a_library_that_is_missing_is_named_with_its_remedy(
    fake_collector: Collector, monkeypatch: pytest.MonkeyPatch, version: str, library: str
) -> None:
    without(monkeypatch, library)
    with pytest.raises(ConfigError) as caught:
        fake_collector.open(HTTP, {"version": version})
    assert library in str(caught.value)
    assert "pip install 'pathbudget[request]'" in str(caught.value)


def without(monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    """As if it were not installed."""
    users = ("pathbudget.probes.http.http", "pathbudget.probes.quic", f"{library}.")
    for name in [name for name in sys.modules if name.startswith(users)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
