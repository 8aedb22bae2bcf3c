"""Traces out of stored samples."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pathbudget.agents.importers.ripe_atlas import read_results
from pathbudget.analysis.routes.model import PathObservation
from pathbudget.analysis.routes.observations import MOST_MEASUREMENTS, Observer, observe
from pathbudget.probes.record import (
    AddressFamily,
    Failure,
    FailureKind,
    Measurement,
    Metric,
    Sample,
    Stage,
    Target,
    Vantage,
)

START = 1_700_000_000 * 10**9
SILENT = Failure(FailureKind.TIMEOUT, Stage.WAIT)
NOT_SENT = Failure(FailureKind.PERMISSION, Stage.SEND)


def hop(
    part: int, responder: str | None, value: int | Failure = 10, *, seq: int = 0,
    flow: int | None = 1, at: int = 0, notes: Any = None,
) -> Sample:  # fmt: skip
    failure = value if isinstance(value, Failure) else None
    return Sample(
        seq=seq, metric=Metric.HOP_RTT, sent_unix_ns=START + at, part=part, flow=flow, notes=notes,
        value_ns=None if isinstance(value, Failure) else value, failure=failure,
        responder=responder,
    )  # fmt: skip


def star(part: int, **more: Any) -> Sample:
    return hop(part, None, SILENT, **more)


def end(seq: int = 0, *, failure: Failure | None = None, **notes: Any) -> Sample:
    return Sample(
        seq=seq, metric=Metric.RTT, sent_unix_ns=START, notes=notes or None, failure=failure,
        value_ns=None if failure else 30,
    )  # fmt: skip


def measurement(*samples: Sample, **changes: Any) -> Measurement:
    given: dict[str, Any] = {
        "id": "m1",
        "vantage": Vantage(name="v", region="region"),
        "target": Target(name="t", host="example.net", site="site"),
        "probe": "trace",
        "started_unix_ns": START,
        "samples": samples,
        "address": "192.0.2.9",
        "family": AddressFamily.IPV4,
    }
    return Measurement(**{**given, **changes})


def rows(observation: PathObservation) -> list[str]:
    return [
        " ".join(",".join(sorted(one)) or "*" for one in flow.hops) for flow in observation.flows
    ]


def test_one_observation_for_each_trace_with_one_path_for_each_flow() -> None:
    (first, second) = observe(
        [
            measurement(
                hop(1, "r1"), hop(1, "r1", 8), hop(1, "r1", flow=2), hop(2, "r2"),
                hop(2, "r3", flow=2), hop(3, None, 30), star(3, flow=2),
                end(confidence=0.95, complete=True, protocol="udp"),
                hop(1, "r1", seq=1, at=500), end(1, failure=SILENT),
            )
        ]
    )  # fmt: skip
    assert rows(first) == ["r1 r2 192.0.2.9", "r1 r3 *"]
    one, two = first.flows
    assert (one.flow, one.reached, two.reached) == (1, True, False)
    assert list(one.hop_rtt_ns) == [8, 10, 30]
    assert (one.sent, one.answered) == ((2, 1, 1), (2, 1, 1))
    assert (two.sent, two.answered) == ((1, 1, 1), (1, 1, 0))
    assert (first.confidence, first.series.protocol) == (0.95, "udp")
    assert (first.series.region, first.series.site) == ("region", "site")
    assert (first.started_unix_ns, first.ended_unix_ns) == (START, START + 30)
    assert (rows(second), second.confidence) == (["r1"], None)
    assert second.started_unix_ns == START + 500


def test_a_rule_that_was_not_met_has_no_confidence() -> None:
    samples = (hop(1, None), end(confidence=0.95, complete=False))
    (observation,) = observe([measurement(*samples)])
    assert observation.confidence is None


def test_what_answered_behind_the_destination_is_the_destination() -> None:
    (observation,) = observe([measurement(hop(1, "r"), hop(2, None), hop(3, None), star(4), end())])
    assert rows(observation) == ["r 192.0.2.9"]


def test_packets_of_one_flow_at_one_hop_are_a_set() -> None:
    (observation,) = observe([measurement(hop(1, "b"), hop(1, "a"), star(1), hop(2, None), end())])
    assert rows(observation) == ["a,b 192.0.2.9"]
    assert observation.flows[0].answered == (2, 1)


def test_hops_that_were_not_asked_are_wild() -> None:
    (observation,) = observe([measurement(hop(3, "c"), hop(4, None), end())])
    assert rows(observation) == ["* * c 192.0.2.9"]
    assert observation.flows[0].sent == (0, 0, 1, 1)


def test_a_last_try_far_away_is_at_an_unknown_distance() -> None:
    (observation,) = observe([measurement(hop(1, "r"), star(2), star(3), hop(255, None), end())])
    assert rows(observation) == ["r * * 192.0.2.9"]
    assert (observation.flows[0].gap, observation.flows[0].reached) == (1, True)
    (observation,) = observe([measurement(hop(1, "r"), star(2), star(3), star(255), end())])
    assert rows(observation) == ["r * *"]
    assert not observation.flows[0].reached


def test_somebody_who_refuses_is_a_hop_and_labels_are_kept() -> None:
    refused = Failure(FailureKind.UNREACHABLE, Stage.WAIT)
    labelled = hop(1, "r", notes={"mpls": "16/0/1/1"})
    (observation,) = observe([measurement(labelled, hop(2, "firewall", refused), end())])
    assert rows(observation) == ["r firewall"]
    assert observation.flows[0].labels == ("16/0/1/1", "")
    assert observation.flows[0].hop_rtt_ns == (10, None)


def test_what_was_not_sent_is_no_trace() -> None:
    assert list(observe([measurement(hop(1, None, NOT_SENT), end(failure=NOT_SENT))])) == []
    assert list(observe([measurement(end())])) == []


def test_a_trace_that_was_cut_off_is_none() -> None:
    """Its destination may not have been asked yet: it would look lost."""
    whole = [hop(1, "r"), hop(2, None), end()]
    (observation,) = observe([measurement(*whole, hop(1, "r", seq=1))])
    assert rows(observation) == ["r 192.0.2.9"]


def test_pieces_of_a_growing_measurement_tell_each_trace_once() -> None:
    samples = [
        hop(1, "r"),
        star(2),
        hop(2, None),
        end(),
        hop(1, "r", seq=1),
        hop(2, None, seq=1),
        end(1),
    ]
    (whole,) = [measurement(*samples)]
    for size in range(1, len(samples) + 1):
        observer = Observer()
        pieces = [samples[at : at + size] for at in range(0, len(samples), size)]
        told = [one for piece in pieces for one in observer.see(measurement(*piece))]
        assert told == list(observe([whole]))


def test_unfinished_traces_are_not_kept_for_ever() -> None:
    import pickle

    observer = Observer()
    for number in range(3 * MOST_MEASUREMENTS):
        observer.see(measurement(hop(1, "r"), id=f"m{number}"))
    assert len(pickle.dumps(observer)) < 500 * MOST_MEASUREMENTS
    assert observer.see(measurement(end(), id="m0")) == []


def test_measurements_of_other_probes_are_passed_over() -> None:
    assert list(observe([measurement(end(), probe="icmp")])) == []


def test_several_measurements_stream() -> None:
    """One at a time: nothing is read ahead."""
    read: list[str] = []

    def stored() -> Iterable[Measurement]:
        for name in ("a", "b"):
            read.append(name)
            yield measurement(hop(1, None), end(), id=name)

    observations = observe(stored())
    assert next(iter(observations)).measurement == "a"
    assert read == ["a"]


@pytest.fixture
def atlas_lines(shared_data: Path) -> list[str]:
    files = [
        shared_data / "ripe_atlas" / name
        for name in ("fetchmesh_ping_2000.ndjson", "ipgeoloc_traceroute.jsonl")
    ]
    lines = [line for file in files for line in file.read_text().splitlines()]
    return [line for line in lines if json.loads(line)["type"] == "traceroute"]


@pytest.mark.needs("data")
def test_real_traceroutes_against_a_second_reading(atlas_lines: list[str], tmp_path: Path) -> None:
    """Hops and who answered, straight out of the JSON."""
    file = tmp_path / "lines.json"
    file.write_text("\n".join(atlas_lines))
    observations = list(observe(read_results([file], keep_addresses=True)))
    told = {one.measurement: one for one in observations}
    assert len(told) == len(observations) == len(atlas_lines)
    for line, measured in zip(atlas_lines, read_results([file], keep_addresses=True), strict=True):
        (flow,) = told[measured.id].flows
        trace = json.loads(line)
        expected = {
            entry["hop"]: {
                packet["from"]
                for packet in entry["result"]
                if "from" in packet and "late" not in packet and not packet.get("dup")
            }
            for entry in trace["result"]
            if entry.get("result") and entry["hop"] != 255
        }
        for limit, responders in expected.items():
            assert flow.hops[limit - 1] == responders, line
        last = trace["result"][-1]
        arrived = any(packet.get("from") == trace["dst_addr"] for packet in last.get("result", []))
        assert flow.reached == arrived
        assert flow.flow == (trace["paris_id"] or None)


def test_records_survive_their_codec() -> None:
    """Notes and parts are what the store keeps."""
    one = measurement(hop(1, "r", notes={"mpls": "16/0/1/1"}), end(protocol="udp"))
    again = msgspec.json.decode(msgspec.json.encode(one), type=Measurement)
    assert list(observe([again])) == list(observe([one]))


def test_what_was_sent_before_the_path_changed_under_way_is_of_another_path() -> None:
    """Both paths in one observation would agree with each, and make them one."""
    before = [hop(1, "r1"), hop(2, "r2", at=1), hop(3, None, at=2)]
    after = [hop(1, "r7", at=100), hop(2, None, at=101)]
    (seen,) = observe([measurement(*before, *after, end(changed_unix_ns=START + 50))])
    assert rows(seen) == ["r7 192.0.2.9"]
    assert list(observe([measurement(*before, end(changed_unix_ns=START + 50))])) == []
