"""The real door over real routers, in namespaces that nobody else uses."""

import functools
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

CHILD = Path(__file__).with_name("path_child.py")
PROTOCOLS = ("icmp", "udp", "tcp")
FAMILIES = ("ipv4", "ipv6")
RAW = (
    *(f"{protocol}_{family}" for protocol in PROTOCOLS for family in FAMILIES),
    *(f"session_{family}" for family in FAMILIES),
    *(f"sizes_{family}_raw" for family in FAMILIES),
    *(f"extensions_{family}" for family in FAMILIES),
    "many",
    "marked",
    "foreign",
)
PLAIN = (
    *(f"plain_{family}" for family in FAMILIES),
    *(f"sizes_{family}_plain" for family in FAMILIES),
    "refused",
)
WAY = {
    "ipv4": ("10.1.0.2", "10.2.0.2", "10.3.0.2", "10.3.0.2"),
    "ipv6": ("fd01::2", "fd02::2", "fd03::2", "fd03::2"),
}
KINDS = ["exceeded", "exceeded", "arrived", "arrived"]

pytestmark = pytest.mark.needs("lab")


@functools.cache
def everything() -> dict[str, Any]:
    """All scenarios in one child."""
    done = subprocess.run(
        [sys.executable, str(CHILD), *RAW, "without", *PLAIN],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = msgspec.json.decode(done.stdout)
    return told


def of_tokens(told: dict[str, Any], *tokens: int) -> list[dict[str, Any]]:
    return [one for token in tokens for one in told["answers"] if one["token"] == token]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_hop_answers_with_both_stamps_of_the_kernel(protocol: str, family: str) -> None:
    told = everything()[f"{protocol}_{family}"]
    answers = of_tokens(told, 101, 102, 103, 104)
    assert [one["from"] for one in answers] == list(WAY[family])
    assert [one["kind"] for one in answers] == KINDS
    assert [one["ttl"] for one in answers] == [64, 63, 62, 62]
    assert {one["key"] for one in answers} == {40_002}
    sent = dict(told["sent"])
    assert told["keys"] == [0, 1, 2, 3]
    for key, answer in zip(told["keys"], answers, strict=True):
        assert 0 < answer["stamp"] - sent[key] < 1_000_000_000


@pytest.mark.parametrize("family", FAMILIES)
def test_without_rights_udp_tells_the_same_hops(family: str) -> None:
    told = everything()[f"plain_{family}"]
    assert told["privileged"] is False
    for key in (40_003, 40_004):
        answers = of_tokens(told, 201, 202, 203, 204)
        assert [one["from"] for one in answers if one["key"] == key] == list(WAY[family])
        assert [one["kind"] for one in answers if one["key"] == key] == KINDS
    assert [one["ttl"] for one in of_tokens(told, 201, 202)] == [64, 64, 63, 63]
    sent = dict(told["sent"])
    assert sorted(sent) == told["keys"][:8] == list(range(8))
    assert all(one["stamp"] > min(sent.values()) for one in told["answers"])


def test_without_rights_other_protocols_and_raw_sockets_are_refused_in_words() -> None:
    told = everything()
    assert "CAP_NET_RAW" in told["plain_ipv4"]["keys"][8]
    assert "setcap cap_net_raw+ep" in told["refused"]["refused"]


@pytest.mark.parametrize("family", FAMILIES)
def test_without_rights_extensions_are_had_and_a_quote_without_payload_is_about_nobody(
    family: str,
) -> None:
    """Two errors came: one quotes all and has a label stack, one quotes the UDP header alone."""
    (answer,) = everything()[f"extensions_{family}"]["answers"]
    assert (answer["token"], answer["stack"]) == (701, [[24_015, 0, False, 1], [16, 5, True, 9]])


@pytest.mark.parametrize("rights", ["raw", "plain"])
@pytest.mark.parametrize("family", FAMILIES)
def test_the_router_says_each_time_that_a_packet_is_too_big(family: str, rights: str) -> None:
    """What the kernel has learned from the first answer does not answer the second question."""
    told = everything()[f"sizes_{family}_{rights}"]
    first, fits, again = of_tokens(told, 401, 402, 403)
    for one in (first, again):
        assert (one["kind"], one["mtu"], one["from"]) == ("too_big", 1_400, WAY[family][1])
    assert fits["kind"] == "arrived"
    assert told["keys"][:3] == [0, 1, 2]
    assert "message too long" in told["keys"][3]


def test_three_thousand_probes_at_once_lose_neither_answers_nor_stamps() -> None:
    assert everything()["many"] == {"pairs": 3_000, "stamps": 3_000, "unstamped": 0}


def test_class_interface_and_source_are_as_asked_for() -> None:
    told = everything()["marked"]
    assert told["class"] == 46 << 2
    assert told["said"] == [
        "raw IP socket (ipv4): this host has no interface nowhere",
        "raw IP socket (ipv4): this host has no address 10.7.7.7",
    ]


def test_pings_and_connections_of_others_are_not_heard() -> None:
    assert everything()["foreign"]["arrivals"] == 0


@pytest.mark.parametrize("family", FAMILIES)
def test_probes_in_a_connection_are_answered_by_all_and_leave_it_usable(family: str) -> None:
    told = everything()[f"session_{family}"]
    assert told["said"] == ["None", True, True]
    for first in (601, 611):  # before and after data went through the connection
        answers = of_tokens(told, *range(first, first + 4))
        assert [one["from"] for one in answers] == list(WAY[family])
        assert [one["kind"] for one in answers] == KINDS
    assert told["echo"] == "hello again"
    assert told["info"] == [11, 0]  # sent, and nothing of it twice
