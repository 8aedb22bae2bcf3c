"""Against servers that others wrote, checked against what they have logged or counted."""

import re
import subprocess
import urllib.request
from pathlib import Path
from typing import Protocol

import dns.message
import dns.query
import pytest
from tests.programs import program

from pathbudget.probes.dns.probe import DNS
from pathbudget.probes.fake_collector import Collector, shot_at
from pathbudget.probes.record import ClockSource, ConnectionMode, FailureKind, Flag, Sample

SECOND = 1_000_000_000
HERE = "127.0.0.1"
Chosen = str | int
ROUNDS = 3


class Certificate(Protocol):
    @property
    def file(self) -> Path: ...


async def shoot(
    collector: Collector, port: int, shots: int = ROUNDS, /, **options: Chosen
) -> list[Sample]:
    """Every shot yields its `dns_hit`; all samples."""
    probe = collector.open(DNS, options)
    for seq in range(shots):
        target = shot_at(HERE, seq=seq, port=port, server_name="localhost", timeout_ns=5 * SECOND)
        probe.fire(target)
        await probe.drain()
    probe.close()
    hits = collector.of("dns_hit")
    assert [sample.seq for sample in hits] == list(range(shots))
    return [sample for _, sample in collector.emitted]


def notes_of(sample: Sample) -> dict[str, object]:
    return dict(sample.notes or {})


@pytest.mark.needs("unbound", "knotd")
@pytest.mark.parametrize("transport", ["udp", "tcp"])
async def test_a_resolver_that_asks_another_server(
    collector: Collector, unbound: dict[str, int], unbound_folder: Path, transport: str
) -> None:
    log = unbound_folder / "unbound.log"
    before = log.stat().st_size
    zone = "cached.example"
    await shoot(collector, unbound[transport], transport=transport, name=f"host.{zone}", zone=zone)
    for sample in collector.of("dns_hit"):
        notes = notes_of(sample)
        assert sample.failure is None
        assert sample.clock_source is ClockSource.KERNEL
        assert (notes["cache"], notes["addresses"]) == ("aged", "192.0.2.7")
        assert notes["nsid"] == "unbound-here"
        assert Flag.LOW_CONFIDENCE not in sample.flags
    assert all(sample.failure is None for sample in collector.of("dns_miss"))
    logged = log.read_text()[before:].lower()
    asked = re.findall(rf"{HERE} (\S+)\.{zone}\. a in noerror [\d.]+ (\d)", logged)
    # One question more than measured ones, and of that name only that one was no cache hit.
    hits = [cached for name, cached in asked if name == "host"]
    assert len(hits) == ROUNDS + 1
    assert hits[1:] == ["1"] * ROUNDS
    misses = [(name, cached) for name, cached in asked if len(name) == 24]
    assert len(set(misses)) == ROUNDS
    assert {cached for _, cached in misses} == {"0"}


@pytest.mark.needs("unbound", "knotd")
async def test_the_answer_is_the_one_that_dnspython_gets(
    collector: Collector, unbound: dict[str, int]
) -> None:
    question = dns.message.make_query("host.lan", "A")
    theirs = dns.query.udp(question, HERE, port=unbound["udp"], timeout=5)
    await shoot(collector, unbound["udp"], 1, name="host.lan", nsid=False)
    notes = notes_of(collector.only("dns_hit"))
    addresses = sorted(str(data) for data in theirs.answer[0])
    assert notes["addresses"] == " ".join(addresses) == "192.0.2.3 192.0.2.7"
    assert notes["ttl"] == theirs.answer[0].ttl
    assert notes["authoritative"]


@pytest.mark.needs("unbound", "knotd")
async def test_what_does_not_fit_is_asked_for_over_tcp(
    collector: Collector, unbound: dict[str, int]
) -> None:
    await shoot(collector, unbound["udp"], 2, name="big.lan", type="TXT")
    for sample in collector.of("dns_hit"):
        notes, value_ns = notes_of(sample), sample.value_ns
        assert Flag.TRUNCATED in sample.flags
        assert value_ns is not None
        udp_us, tcp_us = notes["udp_us"], notes["tcp_us"]
        assert isinstance(udp_us, int)
        assert isinstance(tcp_us, int)
        assert udp_us > 0
        assert tcp_us > 0
        # By the same stamps as the value: its two parts, each cut to whole microseconds.
        assert 0 <= value_ns // 1_000 - udp_us - tcp_us <= 2
        answer_bytes = notes["answer_bytes"]
        assert isinstance(answer_bytes, int)
        assert answer_bytes > 1232


@pytest.mark.needs("unbound", "knotd")
async def test_no_such_name_is_timed_and_an_error_is_not(
    collector: Collector, unbound: dict[str, int]
) -> None:
    await shoot(collector, unbound["udp"], 1, name="x.denied.lan", zone="none.lan")
    refused, none = collector.only("dns_hit"), collector.only("dns_miss")
    assert refused.failure is not None
    assert (refused.failure.kind, refused.failure.detail) == (FailureKind.STATUS, "REFUSED")
    assert none.failure is None
    assert notes_of(none)["rcode"] == "NXDOMAIN"


@pytest.mark.needs("unbound", "knotd")
@pytest.mark.parametrize("mode", ["cold", "resumed", "warm"])
async def test_dns_over_tls(
    collector: Collector, unbound: dict[str, int], certificate: Certificate, mode: str
) -> None:
    options: dict[str, Chosen] = {
        "transport": "dot",
        "mode": mode,
        "ca_file": str(certificate.file),
    }
    await shoot(collector, unbound["dot"], name="host.lan", **options)
    setups, hits = collector.of("setup"), collector.of("dns_hit")
    assert [sample.failure for sample in (*setups, *hits)] == [None] * (2 * ROUNDS)
    assert {sample.mode for sample in (setups[-1], hits[-1])} == {ConnectionMode(mode)}
    assert hits[-1].clock_source is ClockSource.KERNEL
    assert (setups[-1].value_ns == 0) == (mode == "warm")
    if mode == "cold":
        for setup, connect, shake in zip(
            setups, collector.of("connect"), collector.of("tls_handshake"), strict=True
        ):
            assert setup.value_ns == (connect.value_ns or 0) + (shake.value_ns or 0)


@pytest.mark.needs("unbound", "knotd")
async def test_early_data_that_the_server_does_not_offer_is_told(
    collector: Collector, unbound: dict[str, int], certificate: Certificate
) -> None:
    options: dict[str, Chosen] = {
        "transport": "dot",
        "mode": "early_data",
        "ca_file": str(certificate.file),
    }
    await shoot(collector, unbound["dot"], name="host.lan", **options)
    failure = collector.of("dns_hit")[-1].failure  # the first may find no ticket yet
    assert failure is not None
    assert failure.kind is FailureKind.UNAVAILABLE


@pytest.mark.needs("unbound", "knotd")
async def test_nagle_holds_no_answer_back(
    collector: Collector, unbound: dict[str, int], certificate: Certificate
) -> None:
    """unbound's answer waited 40 ms behind its second ticket, for our acknowledgement."""
    options: dict[str, Chosen] = {"transport": "dot", "ca_file": str(certificate.file)}
    await shoot(collector, unbound["dot"], 10, name="host.lan", **options)
    values = sorted(sample.value_ns or 0 for sample in collector.of("dns_hit"))
    assert values[0] < 20_000_000  # the best of ten: a busy host may hold others back


@pytest.mark.needs("unbound", "knotd", "dnsdist")
@pytest.mark.parametrize("mode", ["cold", "resumed", "warm"])
async def test_dns_over_https(
    collector: Collector, dnsdist: dict[str, int], certificate: Certificate, mode: str
) -> None:
    before = counted(dnsdist["web"], "dnsdist_frontend_doh_http_version_queries", "2")
    options: dict[str, Chosen] = {
        "transport": "doh",
        "mode": mode,
        "ca_file": str(certificate.file),
    }
    await shoot(collector, dnsdist["doh"], name="host.lan", zone="lan", **options)
    setups, hits = collector.of("setup"), collector.of("dns_hit")
    assert [sample.failure for sample in (*setups, *hits)] == [None] * (2 * ROUNDS)
    assert {sample.mode for sample in (setups[-1], hits[-1])} == {ConnectionMode(mode)}
    assert notes_of(hits[0])["addresses"] == "192.0.2.3 192.0.2.7"
    assert {notes_of(one)["rcode"] for one in collector.of("dns_miss")} == {"NXDOMAIN"}
    after = counted(dnsdist["web"], "dnsdist_frontend_doh_http_version_queries", "2")
    assert after - before == 2 * ROUNDS + 1  # hits, misses, and the one not measured


@pytest.mark.needs("unbound", "knotd", "dnsdist")
async def test_a_path_where_no_dns_is(
    collector: Collector, dnsdist: dict[str, int], certificate: Certificate
) -> None:
    options: dict[str, Chosen] = {
        "transport": "doh",
        "path": "/other",
        "ca_file": str(certificate.file),
    }
    await shoot(collector, dnsdist["doh"], 1, name="host.lan", **options)
    sample = collector.only("dns_hit")
    assert sample.failure is not None
    assert (sample.failure.kind, sample.failure.detail) == (FailureKind.STATUS, "HTTP status 404")
    assert collector.only("setup").failure is None


@pytest.mark.needs("unbound", "knotd", "dnsdist")
async def test_an_unknown_certificate_is_refused_or_marked(
    collector: Collector, dnsdist: dict[str, int]
) -> None:
    await shoot(collector, dnsdist["dot"], 1, transport="dot", name="host.lan")
    failure = collector.only("dns_hit").failure
    assert failure is not None
    assert failure.kind is FailureKind.CERTIFICATE
    assert collector.only("setup").failure == failure
    collector.emitted.clear()
    await shoot(collector, dnsdist["dot"], 1, transport="dot", name="host.lan", verify=False)
    for metric in ("setup", "dns_hit"):
        assert Flag.UNVERIFIED in collector.only(metric).flags


@pytest.mark.needs("knotd")
async def test_a_signed_zone_with_a_wildcard(
    collector: Collector, knot: dict[str, int], knot_folder: Path
) -> None:
    before = statistics(knot_folder)
    options: dict[str, Chosen] = {"dnssec": True, "client_subnet": "198.51.100.0/24"}
    zone = "many.wild.example"
    await shoot(collector, knot["udp"], name="alias.wild.example", zone=zone, **options)
    hit, miss = notes_of(collector.of("dns_hit")[-1]), notes_of(collector.of("dns_miss")[-1])
    assert (hit["alias"], hit["addresses"]) == ("edge.host.wild.example.", "192.0.2.8")
    assert miss["addresses"] == "192.0.2.9"
    for notes in (hit, miss):
        assert notes["signed"] is True
        assert notes["nsid"] == "knot-here"
        assert notes["cache"] == "authoritative"
    after = statistics(knot_folder)
    assert after["udp4"] - before.get("udp4", 0) == 2 * ROUNDS + 1


def statistics(folder: Path) -> dict[str, int]:
    """What knotd has counted of one zone, by transport."""
    command = [program("knotc"), "-s", str(folder / "knot.sock"), "zone-stats", "wild.example"]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {word: int(number) for word, number in re.findall(r"protocol\[(\w+)\] = (\d+)", said)}


def counted(port: int, name: str, version: str) -> int:
    """What dnsdist has counted."""
    with urllib.request.urlopen(f"http://{HERE}:{port}/metrics", timeout=5) as answer:
        text = answer.read().decode()
    found = re.findall(rf'^{name}{{.*version="{version}".*}} (\d+)$', text, flags=re.MULTILINE)
    return sum(map(int, found))
