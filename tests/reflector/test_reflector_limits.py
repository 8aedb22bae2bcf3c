"""Who is answered, and how much. Nothing here has a socket."""

import ipaddress
import tracemalloc

import pytest

from pathbudget.agents.reflector.limits import AllowList, RateLimiter, Rates, source_prefix

SECOND = 1_000_000_000


def refusals(limiter: RateLimiter, address: str, count: int, now_ns: int = 0) -> list[str]:
    return [limiter.refusal(address, now_ns) for _ in range(count)]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("192.0.2.1", "192.0.2.254", True),
        ("192.0.2.1", "192.0.3.1", False),
        ("2001:db8:1::1", "2001:db8:1:ffff::2", True),
        ("2001:db8:1::1", "2001:db8:2::1", False),
        ("fe80::1%eth0", "fe80::2%eth1", True),
        ("10.0.0.1", "::ffff:10.0.0.1", False),
    ],
)
def test_a_source_is_a_network_that_is_routed_by_itself(one: str, other: str, same: bool) -> None:
    assert (source_prefix(one) == source_prefix(other)) is same


def test_one_source_prefix_gets_its_rate_and_no_more_whatever_its_addresses() -> None:
    limiter = RateLimiter(Rates(per_source=10, total=1000))
    told = [limiter.refusal(f"192.0.2.{number}", 0) for number in range(30)]
    assert told == [""] * 10 + ["over_source_rate"] * 20
    assert refusals(limiter, "198.51.100.1", 1) == [""]


def test_all_sources_together_get_the_total_rate() -> None:
    limiter = RateLimiter(Rates(per_source=10, total=25))
    told = [limiter.refusal(f"10.{number}.0.1", 0) for number in range(40)]
    assert told == [""] * 25 + ["over_total_rate"] * 15


def test_a_new_second_brings_a_new_allowance() -> None:
    limiter = RateLimiter(Rates(per_source=3, total=100))
    assert refusals(limiter, "192.0.2.1", 4) == ["", "", "", "over_source_rate"]
    assert refusals(limiter, "192.0.2.1", 1, SECOND - 1) == ["over_source_rate"]
    assert refusals(limiter, "192.0.2.1", 1, SECOND) == [""]


def test_a_low_rate_is_kept_exactly() -> None:
    limiter = RateLimiter(Rates(per_source=1, total=5))
    admitted = sum(limiter.refusal("192.0.2.1", ms * 1_000_000) == "" for ms in range(10_000))
    assert admitted == 10


def test_memory_is_bounded_by_the_total_rate_under_a_flood_from_everywhere() -> None:
    limiter = RateLimiter(Rates(per_source=10, total=1_000))
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for number in range(15_000):
        limiter.refusal(
            f"{number % 223}.{number // 223 % 256}.{number // 57088}.1", number * 10_000
        )
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 500_000


def test_an_empty_allow_list_admits_everybody() -> None:
    assert AllowList([]).admits("192.0.2.1")
    assert AllowList([]).admits("2001:db8::1")


def test_an_allow_list_admits_its_networks_and_nobody_else() -> None:
    listed = AllowList([ipaddress.ip_network("192.0.2.0/24"), ipaddress.ip_network("fe80::/10")])
    assert listed.admits("192.0.2.0")
    assert listed.admits("192.0.2.255")
    assert not listed.admits("192.0.3.0")
    assert listed.admits("fe80::1%eth0")
    assert not listed.admits("2001:db8::1")
    # An IPv4 network says nothing about the IPv6 addresses of the same number.
    assert not listed.admits("::c000:201")
