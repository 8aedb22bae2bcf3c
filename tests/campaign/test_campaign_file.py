"""The campaign file: the plan it implies, and every fault in one go."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pathbudget.agents.campaign.campaign_file import Campaign, load_campaign
from pathbudget.agents.campaign.limits import planned_cost
from pathbudget.agents.campaign.plan import due_shots
from pathbudget.probes.errors import ConfigError, Fault
from pathbudget.probes.record import AddressFamily
from pathbudget.probes.table import probe_table

Load = Callable[..., Campaign]


def faults_of(load: Load, *changes: tuple[str, str], append: str = "") -> list[Fault]:
    with pytest.raises(ConfigError) as caught:
        load(*changes, append=append)
    return list(caught.value.faults)


def test_a_probe_with_a_port_takes_the_targets_that_have_one_and_icmp_takes_hosts(
    load: Load,
) -> None:
    (vantage,) = load().plan.vantages
    found = {
        (series.probe, series.target.site, series.target.name, series.target.port, series.family)
        for series in vantage.series
    }
    assert found == {
        ("icmp", "stemmons", "tls", None, AddressFamily.IPV4),
        ("icmp", "stemmons", "router", None, AddressFamily.IPV4),
        ("icmp", "cermak", "edge", None, None),
        ("tls", "stemmons", "tls", 8443, AddressFamily.IPV4),
        ("tls", "cermak", "edge", 443, None),
    }


def test_the_seed_fixes_every_send_time(load: Load) -> None:
    first, second = load().plan.vantages[0], load().plan.vantages[0]
    assert list(due_shots(first)) == list(due_shots(second))
    other = load(seed=8).plan.vantages[0]
    assert list(due_shots(first)) != list(due_shots(other))


def test_without_a_seed_one_is_drawn(load: Load) -> None:
    seeds = {load(("seed = 7\n", "")).plan.seed for _ in range(5)}
    assert len(seeds) > 1


def test_the_vantage_takes_its_place_from_the_region(load: Load) -> None:
    vantage = load().plan.vantages[0].vantage
    assert (vantage.name, vantage.region) == ("office", "dallas")
    assert (vantage.latitude, vantage.longitude) == (32.78, -96.8)


@pytest.mark.parametrize(
    ("change", "where", "problem"),
    [
        (('name = "first look"', ""), "name", "is missing"),
        (('duration = "10s"', 'duration = "10 seconds"'), "duration", "is no duration"),
        (('duration = "10s"', 'duration = "0s"'), "duration", "out of range"),
        (('duration = "10s"', 'duration = "400d"'), "duration", "out of range"),
        (("seed = 7", "seed = -1"), "seed", "out of range"),
        (("seed = 7", "sead = 7"), "sead", "unknown key"),
        (('region = "dallas"', 'region = "dalas"'), "vantage[0].region", "is in no catalogue"),
        (('name = "office"\n', ""), "vantage[0].name", "is missing"),
        (('region = "dallas"', 'region = "dallas"\nasn = 0'), "vantage[0].asn", "out of range"),
        (
            ('region = "dallas"', 'region = "dallas"\nsource_ipv4 = "::1"'),
            "vantage[0].source_ipv4",
            "is no ipv4 address",
        ),
        (
            ('region = "dallas"', 'region = "dallas"\nnamespace = "lab:dallas"'),
            "vantage[0].namespace",
            "needs a lab",
        ),
        (('kind = "icmp"', 'kind = "ping"'), "probe[0].kind", "is unknown"),
        (('kind = "icmp"\n', ""), "probe[0].kind", "is missing"),
        (('interval = "250ms"\n', ""), "probe[0].interval", "is missing"),
        (('timeout = "3s"', "timeout = 3"), "probe[1].timeout", "3 is no duration"),
        (('mode = "cold"', 'mode = "hot"'), "probe[1].mode", "hot"),
        (('mode = "cold"', 'mood = "cold"'), "probe[1].mood", "mood"),
        (('kind = "icmp"', 'kind = "icmp"\nsites = ["stemons"]'), "probe[0].sites[0]", "unknown"),
        (
            ('kind = "icmp"', 'kind = "icmp"\nvantages = ["ofice"]'),
            "probe[0].vantages",
            "is unknown",
        ),
        (
            ('kind = "icmp"', 'kind = "icmp"\nvantages = "ofice"'),
            "probe[0].vantages",
            "is unknown",
        ),
        (('kind = "icmp"', 'kind = "icmp"\nvantages = [7]'), "probe[0].vantages[0]", "no text"),
        (('kind = "icmp"', 'kind = "icmp"\nvantages = []'), "probe[0].vantages", "empty list"),
        (('kind = "icmp"', 'kind = "icmp"\nvantages = 7'), "probe[0].vantages", "is no list"),
        (('kind = "icmp"', 'kind = "icmp"\nsites = []'), "probe[0].sites", "empty list"),
        (
            ('kind = "icmp"', 'kind = "icmp"\nsites = ["stemmons"]\nfamilies = ["ipv6"]'),
            "probe[0].families",
            "no target has an address of ipv6",
        ),
        (
            ('kind = "icmp"', 'kind = "icmp"\nfamilies = ["ipv5"]'),
            "probe[0].families[0]",
            "is unknown",
        ),
        (
            ('kind = "icmp"', 'kind = "icmp"\nschedule = "uniform"'),
            "probe[0].schedule",
            "is unknown",
        ),
        (('kind = "icmp"', 'kind = "tls"'), "probe[1]", "is taken"),
        (('catalogue = "catalogue.toml"', ""), "catalogue", "is missing"),
        (("latitude = 32.78", "latitude = 132.78"), "region[0].latitude", "out of range"),
        (('interval = "250ms"', 'interval = "1ms"'), "limits.packets_per_second", "would send"),
    ],
)
def test_each_fault_names_its_place(
    load: Load, change: tuple[str, str], where: str, problem: str
) -> None:
    faults = faults_of(load, change)
    found = [fault for fault in faults if fault.where.startswith(where)]
    assert found, faults
    assert problem in found[0].problem
    assert found[0].expected
    assert found[0].file.endswith((".toml",))


def test_a_probe_without_a_single_target_is_a_fault_not_an_empty_run(load: Load) -> None:
    faults = faults_of(
        load,
        ('[[site.target]]\nname = "edge"\nhost = "edge.cermak.test"\n', ""),
        ('kind = "tls"', 'kind = "tls"\nsites = ["cermak"]'),
    )
    (fault,) = faults
    assert (fault.where, fault.problem) == ("probe[1].sites", "no site of it has a target")


def test_a_probe_from_one_vantage_given_as_text_runs_from_that_one_alone(load: Load) -> None:
    second = '[[vantage]]\nname = "home"\nregion = "chicago"\n'
    plan = load(('kind = "icmp"', 'kind = "icmp"\nvantages = "home"'), append=second).plan
    assert [{series.probe for series in vantage.series} for vantage in plan.vantages] == [
        {"tls"},
        {"icmp", "tls"},
    ]


def test_all_faults_come_at_once_and_nothing_is_loaded(load: Load) -> None:
    faults = faults_of(
        load,
        ('name = "first look"', "nome = 1"),
        ('duration = "10s"', 'duration = "soon"'),
        ('kind = "icmp"', 'kind = "ping"'),
        ('kind = "tls"', 'kind = "tls"\nfamilies = ["ipv7"]'),
        ("latitude = 32.78", 'latitude = "north"'),
    )
    places = {fault.where.split(" ")[0] for fault in faults}
    assert {"name", "nome", "duration", "probe[0].kind", "probe[1].families[0]"} <= places
    assert any(place.startswith("region[0].latitude") for place in places)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"name = ", "not TOML"),
        (b'name = "\xff"', "is not UTF-8"),
        (None, "cannot be read"),
        (b"", "is missing"),
    ],
)
def test_a_file_that_is_no_campaign_is_a_fault(
    tmp_path: Path, content: bytes | None, problem: str
) -> None:
    path = tmp_path / "campaign.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=problem):
        load_campaign(path, probe_table())


def test_limits_are_on_by_default_and_say_what_the_plan_would_do(load: Load) -> None:
    (fault,) = faults_of(load, ('interval = "250ms"', 'interval = "5ms"'))
    assert fault.where == "limits.packets_per_second"
    assert "vantage office would send and receive" in fault.problem
    assert "500" in fault.expected


def test_a_broken_limit_names_what_costs_most(load: Load) -> None:
    http = '[[probe]]\nkind = "http"\ninterval = "1s"\nanswer_bytes = 1_048_576\n'
    faults = {fault.where: fault.problem for fault in faults_of(load, append=http)}
    said = faults["limits.packets_per_second"]
    assert said.endswith("% of it is probe http for answer_bytes = 1048576")
    asked = 'kind = "completion"\ninterval = "1s"\nprompt_sigma = 0.5\nmax_tokens = 8\n'
    said = faults_of(load, append=f"[[probe]]\n{asked}")[0].problem
    assert said.endswith("of it is probe completion for prompt_most = 131072")
    (fault,) = faults_of(load, append="[limits]\nbytes = 1000\n")
    assert fault.problem.endswith("% of it is probe tls")
    (fault,) = faults_of(load, ('interval = "250ms"', 'interval = "5ms"'))
    assert fault.problem.endswith("% of it is probe icmp")


def test_an_http_probe_of_every_second_is_within_the_limits(load: Load) -> None:
    assert load(append='[[probe]]\nkind = "http"\ninterval = "1s"\n').plan.vantages


def test_places_count_entries_with_faults_too(load: Load) -> None:
    twice = '[[probe]]\nkind = "icmp"\ninterval = "1s"\n'
    gone = '[[probe]]\nkind = "tcp"\ninterval = "1s"\nvantages = "nowhere"\n'
    found = faults_of(load, ('timeout = "3s"', "timeout = 3"), append=twice + gone)
    assert [fault.where for fault in found] == [
        "probe[1].timeout", "probe[2]", "probe[3].vantages"
    ]  # fmt: skip


def test_a_vantage_with_a_fault_is_known_to_the_probes(load: Load) -> None:
    (fault,) = faults_of(
        load,
        ('region = "dallas"', 'region = "dalas"'),
        ('kind = "icmp"', 'kind = "icmp"\nvantages = "office"'),
    )
    assert fault.where == "vantage[0].region"


def test_limits_can_be_raised_on_purpose(load: Load) -> None:
    raised = "[limits]\npackets_per_second = 5000\npackets_per_second_per_target = 5000\n"
    campaign = load(('interval = "250ms"', 'interval = "5ms"'), append=raised)
    assert campaign.plan.limits.packets_per_second == 5000


def test_the_planned_cost_adds_up(load: Load) -> None:
    plan = load().plan
    cost = planned_cost(plan, probe_table())
    assert cost.shots == pytest.approx(3 * 40 + 2 * 10)
    assert cost.packets == pytest.approx(
        3 * 40 * probe_table()["icmp"].cost({}).packets
        + 20 * probe_table()["tls"].cost(plan.vantages[0].series[-1].options).packets
    )


def test_a_changed_file_or_catalogue_has_another_digest(load: Load) -> None:
    digests = {
        load().digest,
        load(("seed = 7", "seed = 8")).digest,
        load(("latitude = 32.80", "latitude = 32.81")).digest,
    }
    assert len(digests) == 3
    assert load().digest in digests


@pytest.mark.parametrize("written", ["3", '"3"'])
def test_a_duration_without_a_unit_is_answered_with_one(load: Load, written: str) -> None:
    (fault,) = faults_of(load, ('timeout = "3s"', f"timeout = {written}"))
    assert fault.expected == 'a unit: "3s"?'
