"""Probes that an operator asks an agent of a real fleet for, beside its plan."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.collector.fleet_run import OFFICE, FleetRun
from tests.faults.one_agent import plan_of
from tests.fleet.conftest import entered, serving, until
from typer.testing import CliRunner

from pathbudget.agents.bus import asking
from pathbudget.agents.bus.asking import ask
from pathbudget.agents.bus.subjects import OPERATOR, PLANS, key_subject
from pathbudget.agents.cli.main import application
from pathbudget.agents.plans.keys import generate, read_private
from pathbudget.agents.plans.request import ProbeRequest, sign_request
from pathbudget.agents.plans.signing import sign
from pathbudget.probes.codec import decode_line
from pathbudget.probes.errors import BusError
from pathbudget.probes.record import Measurement

pytestmark = [pytest.mark.needs("nats-server")]

SECOND_NS = 1_000_000_000
CATALOGUE = """[[region]]
name = "here"
latitude = 32.8
longitude = -96.8
weight = 1

[[site]]
name = "loop"
latitude = 32.8
longitude = -96.8

[[site.target]]
name = "lo"
host = "{host}"
"""
CAMPAIGN = """name = "now"
catalogue = "catalogue.toml"
duration = "10s"

[[vantage]]
name = "office"
region = "here"

[[probe]]
kind = "icmp"
interval = "100ms"
"""


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FleetRun]:
    """A fleet with an agent that measures."""
    place = tmp_path_factory.mktemp("asked")
    for served in serving(place):
        run = FleetRun(place, served)
        try:
            run.push()
            run.start_agent()
            run.await_samples(20)
            yield run
        finally:
            run.close()


def request(*, agent: str = OFFICE, interval_ns: int = 50_000_000, **words: int) -> ProbeRequest:
    now = time.time_ns()
    plan = plan_of(interval_ns, serial=words.get("serial", now))
    expires = words.get("expires", now + 60 * SECOND_NS)
    named = msgspec.structs.replace(plan, agent=agent, expires_unix_ns=expires)
    return ProbeRequest(named, words.get("duration_ns", SECOND_NS))


def sent(run: FleetRun, envelope: bytes) -> list[Measurement]:
    return asyncio.run(
        ask(run.served.login(OPERATOR), OFFICE, envelope, SECOND_NS, lambda _text: None)
    )


def signed(run: FleetRun, wanted: ProbeRequest) -> bytes:
    return sign_request(wanted, read_private(run.served.folder.path.with_name("operator")))


def refused(run: FleetRun, envelope: bytes) -> str:
    """What the agent says against it, which is in its log, too."""
    with pytest.raises(BusError) as caught:
        sent(run, envelope)
    assert f"agent {OFFICE}: plan refused" in str(caught.value)
    words = str(caught.value).removeprefix(f"agent {OFFICE}: ")
    until(lambda: words[:60] in run.log(OFFICE), lambda: run.log(OFFICE))
    return words


def test_an_agent_measures_what_it_is_asked_for_and_goes_on_with_its_plan(
    asked: FleetRun,
) -> None:
    before = asked.status()
    (found,) = sent(asked, signed(asked, request()))
    assert found.vantage.name == OFFICE
    assert found.options["run"].startswith("office-asked-")  # type: ignore[union-attr]
    assert [one.seq for one in found.samples] == list(range(20))
    assert not any(one.failure for one in found.samples)
    assert before is not None

    def went_on() -> bool:
        after = asked.status()
        assert after is not None
        return after.serial == before.serial and after.samples > before.samples

    until(went_on, lambda: asked.log(OFFICE))


def test_the_command_prints_what_came_and_keeps_it_where_it_is_told(
    asked: FleetRun, tmp_path: Path
) -> None:
    folder = asked.served.folder.path
    campaign, catalogue = tmp_path / "now.toml", tmp_path / "catalogue.toml"
    campaign.write_text(CAMPAIGN)
    catalogue.write_text(CATALOGUE.format(host="127.0.0.1"))
    words = ["fleet", "probe", OFFICE, str(campaign), "--login", str(folder / "operator.toml")]
    words += ["--key", str(folder.with_name("operator")), "--duration", "1s"]
    table = CliRunner().invoke(application, [*words, "--store", str(tmp_path / "store")])
    assert table.exit_code == 0, table.output
    assert "icmp  lo 127.0.0.1  n " in table.stdout
    lines = CliRunner().invoke(application, [*words, "--format", "json"])
    assert decode_line(lines.stdout.splitlines()[0].encode()).target.name == "lo"
    catalogue.write_text(CATALOGUE.format(host="192.0.2.1"))
    outside = CliRunner().invoke(application, words)
    assert outside.exit_code == 5
    assert "192.0.2.1 is in no allowed network" in outside.output
    campaign.write_text(CAMPAIGN.replace("office", "elsewhere"))
    other = CliRunner().invoke(application, words)
    assert other.exit_code == 2
    assert "none is called office" in other.output


def test_a_request_is_carried_out_once(asked: FleetRun) -> None:
    envelope = signed(asked, request())
    assert sent(asked, envelope)
    assert "(replayed)" in refused(asked, envelope)
    older = request(serial=time.time_ns() - 3600 * SECOND_NS)
    assert "(replayed)" in refused(asked, signed(asked, older))


def test_what_is_not_for_this_agent_or_not_from_its_operator_is_refused(
    asked: FleetRun, tmp_path: Path
) -> None:
    key = read_private(asked.served.folder.path.with_name("operator"))
    generate(tmp_path / "stranger", tmp_path / "stranger.pub")
    stranger = read_private(tmp_path / "stranger")
    assert "(unreadable)" in refused(asked, b"\x00garbage")
    assert "(unknown_key)" in refused(asked, sign_request(request(), stranger))
    assert "(other_agent)" in refused(asked, signed(asked, request(agent="elsewhere")))
    assert "(expired)" in refused(asked, signed(asked, request(expires=time.time_ns() - 1)))
    assert "(wrong_signature)" in refused(asked, sign(request().plan, key)), "a plan is no request"


def test_too_much_is_refused_and_too_much_beside_the_plan(asked: FleetRun) -> None:
    assert "60 s at most" in refused(asked, signed(asked, request(duration_ns=61 * SECOND_NS)))
    many = request(interval_ns=10_000_000, duration_ns=60 * SECOND_NS)
    assert "packets; a request has" in refused(asked, signed(asked, many))
    # its own rate is within the 500 per second of the policy; the plan has 100 already
    assert "beside" in refused(asked, signed(asked, request(interval_ns=4_800_000)))


def test_a_signed_request_is_no_plan(asked: FleetRun) -> None:
    """Whoever has the bus could put one into the bucket of plans."""

    async def put() -> None:
        async with entered(asked.served.login(OPERATOR)) as operator:
            envelope = signed(asked, request())
            await operator.client.jetstream().publish(key_subject(PLANS, OFFICE), envelope)

    before = asked.status()
    asyncio.run(put())
    until(lambda: "(wrong_signature)" in asked.log(OFFICE), lambda: asked.log(OFFICE))
    after = asked.status()
    assert before is not None
    assert after is not None
    assert after.serial == before.serial


def test_an_agent_that_is_away_is_said_to_be(
    asked: FleetRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "SLACK_S", 0.2)
    with pytest.raises(BusError, match=r"no answer of agent nobody: none within 1\.2 s"):
        asyncio.run(ask(asked.served.login(OPERATOR), "nobody", b"", SECOND_NS, lambda _text: None))
