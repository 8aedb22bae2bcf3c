"""What a host lets its agent do, whatever was signed."""

from datetime import UTC, datetime, time
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from tests.plans.conftest import a_plan, a_series

from pathbudget.agents.plans.policy import Policy, QuietHours
from pathbudget.agents.plans.policy_file import read_policy
from pathbudget.probes.errors import ConfigError

BERLIN = ZoneInfo("Europe/Berlin")


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 1_000_000_000


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "::1", "169.254.169.254", "fe80::1", "fe80::1%eth0", "::ffff:127.0.0.1"],
)
def test_this_host_and_its_link_are_probed_only_where_they_are_listed(address: str) -> None:
    assert "must be allowed by name" in Policy().refuses_address(address)
    networks = tuple(map(ip_network, ("127.0.0.0/8", "::1", "169.254.0.0/16", "fe80::/10")))
    assert not Policy(allowed_networks=networks).refuses_address(address)


@pytest.mark.parametrize(
    "address", ["0.0.0.0", "224.0.0.1", "255.255.255.255", "240.0.0.1", "ff02::1", "::"]
)
def test_what_is_no_host_is_never_probed(address: str) -> None:
    everything = tuple(map(ip_network, ("0.0.0.0/0", "::/0")))
    assert "no address of a host" in Policy(allowed_networks=everything).refuses_address(address)


def test_only_allowed_networks_count_where_there_are_some() -> None:
    policy = Policy(allowed_networks=(ip_network("10.0.0.0/8"),))
    assert not policy.refuses_address("10.1.2.3")
    assert "no allowed network" in policy.refuses_address("192.0.2.1")
    assert "no allowed network" in policy.refuses_address("2001:db8::1")


def test_do_not_probe_comes_before_what_is_allowed() -> None:
    policy = Policy(
        allowed_networks=(ip_network("10.0.0.0/8"),), do_not_probe=(ip_network("10.9.0.0/16"),)
    )
    assert not policy.refuses_address("10.8.0.1")
    assert "do-not-probe" in policy.refuses_address("10.9.0.1")
    assert "do-not-probe" in policy.refuses_address("::ffff:10.9.0.1")


def test_a_name_on_the_list_covers_what_is_under_it_and_nothing_beside_it() -> None:
    policy = Policy(do_not_probe_names=frozenset({"example.org"}))
    for name in ("example.org", "EXAMPLE.ORG.", "a.b.example.org"):
        assert policy.refuses_host(name)
    for name in ("notexample.org", "example.org.evil.test"):
        assert not policy.refuses_host(name)


def test_rates_and_volume_of_the_whole_plan_are_held_against_the_host() -> None:
    fast = a_series(interval_ns=2_000_000)
    assert Policy().refusals(a_plan(fast)) == [
        "1000 packets per second, at most 500 are allowed",
        "8986 MB a day, at most 2000 are allowed",
    ]
    roomy = Policy(packets_per_second=2_000, bytes_per_day=10**10)
    assert roomy.refusals(a_plan(fast, packets_per_second=2_000)) == []
    assert roomy.refusals(a_plan(fast)) == ["1000 packets per second, at most 500 are allowed"]


def test_unknown_probes_and_those_not_allowed_are_told() -> None:
    plan = a_plan(a_series(kind="sonar"), a_series(kind="tcp"))
    assert Policy(probes=frozenset({"icmp"})).refusals(plan) == [
        "probe 'sonar' is unknown here",
        "probe tcp is not allowed",
    ]


@pytest.mark.parametrize("broken", [{"interval_ns": 0}, {"train": 0}, {"timeout_ns": -1}])
def test_a_series_without_a_rhythm_is_refused_before_anything_divides_by_it(
    broken: dict[str, Any],
) -> None:
    (text,) = Policy().refusals(a_plan(a_series(**broken)))
    assert "no interval" in text


@pytest.mark.parametrize("name", ["/etc/shadow", "../secret", "a/../../secret", "link"])
def test_no_file_outside_of_the_folder_is_opened_for_a_plan(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "link").symlink_to("/etc/passwd")
    series = a_series(kind="tls", options={"ca_file": name})
    assert "outside of" in Policy(files=folder).refusals(a_plan(series))[0]
    assert "no folder of files" in Policy().refusals(a_plan(series))[0]


def test_a_file_of_the_folder_is_found_there(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("")
    policy = Policy(files=tmp_path)
    plan = a_plan(a_series(kind="tls", options={"ca_file": "ca.pem"}))
    assert policy.refusals(plan) == []
    local = policy.localized(plan).series[0].options["ca_file"]
    assert local == str(tmp_path / "ca.pem")


def test_quiet_hours_over_midnight_belong_to_the_day_they_begin() -> None:
    friday = QuietHours(BERLIN, time(22), time(6), frozenset({4}))
    assert friday.holds(at("2026-11-27T21:00"))  # Friday 22:00 in Berlin
    assert friday.holds(at("2026-11-28T04:59"))
    assert not friday.holds(at("2026-11-28T05:00"))
    assert not friday.holds(at("2026-11-27T04:59"))  # Friday morning belongs to Thursday


def test_quiet_hours_follow_the_clock_of_the_zone_when_it_changes() -> None:
    night = QuietHours(BERLIN, time(1), time(4))
    # 25 October 2026: three becomes two again, so that the night is an hour longer.
    quiet = [hour for hour in range(22, 28) if night.holds(at("2026-10-24T00:00") + hour * HOUR)]
    assert quiet == [23, 24, 25, 26]
    # 29 March 2026: two becomes three.
    quiet = [hour for hour in range(22, 28) if night.holds(at("2026-03-28T00:00") + hour * HOUR)]
    assert quiet == [24, 25]


HOUR = 3_600_000_000_000


def test_a_policy_file_says_all_of_it(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text("""
allowed_networks = ["192.0.2.0/24", "2001:db8::/32"]
do_not_probe = ["192.0.2.7", "example.org"]
probes = ["icmp", "tls"]
packets_per_second = 50
bytes_per_day = 1_000_000
files = "files"

[[quiet_hours]]
zone = "Europe/Berlin"
from = "22:00"
to = 06:00:00
days = ["friday"]
""")
    policy = read_policy(path)
    assert policy == Policy(
        allowed_networks=(ip_network("192.0.2.0/24"), ip_network("2001:db8::/32")),
        do_not_probe=(ip_network("192.0.2.7/32"),),
        do_not_probe_names=frozenset({"example.org"}),
        probes=frozenset({"icmp", "tls"}),
        packets_per_second=50,
        bytes_per_day=1_000_000,
        quiet_hours=(QuietHours(BERLIN, time(22), time(6), frozenset({4})),),
        files=tmp_path / "files",
    )


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('allowed_networks = ["192.0.2.1/24"]', "allowed_networks[0]"),
        ('allowed_networks = "10.0.0.0/33"', "allowed_networks[0]"),
        ("allowed_networks = []", "allowed_networks"),
        ('do_not_probe = ["192.0.2"]', "do_not_probe[0]"),
        ('do_not_probe = ["300.1.1.1"]', "do_not_probe[0]"),
        ('probes = ["icmb"]', "probes[0]"),
        ("packets_per_second = 0", "packets_per_second"),
        ("bytes_per_dya = 5", "bytes_per_dya"),
        ('quiet_hours = "night"', "quiet_hours"),
        ('[[quiet_hours]]\nzone = "Mars"\nfrom = "1:00"\nto = "02:00"', "quiet_hours[0].zone"),
        ('[[quiet_hours]]\nfrom = "01:00"\nto = "02:00"', "quiet_hours[0].zone"),
        (
            '[[quiet_hours]]\nzone = "UTC"\nfrom = "01:00"\nto = "01:00"',
            "quiet_hours[0].to",
        ),
    ],
)
def test_what_is_wrong_in_a_policy_is_told_and_protects_nobody(
    tmp_path: Path, line: str, told: str
) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(line)
    with pytest.raises(ConfigError) as caught:
        read_policy(path)
    assert told in [fault.where for fault in caught.value.faults]
