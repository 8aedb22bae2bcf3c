"""exabgp's and RIS Live's JSON: what was recorded, and what must not be misread."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pathbudget.probes.bgp.exabgp_json import ExabgpReader
from pathbudget.probes.bgp.messages import Channel
from pathbudget.probes.bgp.record import FeedKind, RouteUpdate, UpdateKind
from pathbudget.probes.bgp.ris_live import RisLiveReader, ping, subscription

NOW = 1_796_195_100_000_000_000
SESSION = Path(__file__).with_name("exabgp_session.jsonl")


def exabgp() -> ExabgpReader:
    return ExabgpReader(Channel("edge", FeedKind.SESSION))


def ris() -> RisLiveReader:
    return RisLiveReader(Channel("ris", FeedKind.RIS_LIVE))


def short(update: RouteUpdate) -> tuple[str, str, str, int | None]:
    return update.kind.value, update.prefix, update.as_path, update.path_id


def test_a_recorded_session_with_bird() -> None:
    """exabgp 5.0.15 told these lines of BIRD 2.0.12: up, two tables, withdrawal, back, shut."""
    reader = exabgp()
    updates = [u for line in SESSION.read_text().splitlines() for u in reader.read(line, NOW)]
    assert [short(update) for update in updates] == [
        ("peer_up", "", "", None),
        ("announce", "10.200.2.0/24", "65012 65099", 2),
        ("announce", "10.200.1.0/24", "", 2),
        ("end_of_rib", "", "", None),
        ("announce", "2001:db8:1::/48", "", None),
        ("end_of_rib", "", "", None),
        ("withdraw", "10.200.2.0/24", "", 2),
        ("withdraw", "10.200.1.0/24", "", 2),
        ("announce", "10.200.1.0/24", "", 2),
        ("peer_down", "", "", None),
    ]
    route = updates[1]
    assert route.communities == ("65000:120", "65000:1:2")
    assert (route.med, route.local_preference, route.next_hop) == (30, 100, "127.0.0.1")
    assert (route.peer_address, route.peer_asn) == ("127.0.0.1", 65011)
    assert (route.time_unix_ns, route.arrived_unix_ns) == (1796195067358879000, NOW)
    assert updates[-1].detail == "notification received (6,2)"
    assert reader.quarantine.count == 0
    assert len({update.id for update in updates}) == len(updates)
    again = exabgp()
    lines = SESSION.read_bytes().splitlines(keepends=True)
    assert [u.id for line in lines for u in again.read(line, 0)] == [u.id for u in updates]


@pytest.mark.needs("data")
def test_every_line_of_exabgps_own_tests(shared_data: Path) -> None:
    """Two are about unicast; of those one announces nothing."""
    reader = exabgp()
    lines = [
        line
        for path in sorted((shared_data / "bgp/exabgp_decoding").iterdir())
        for line in path.read_text().splitlines()
        if line.startswith('{ "exabgp"')
    ]
    updates = [update for line in lines for update in reader.read(line, NOW)]
    assert len(lines) == 13
    assert [update.prefix for update in updates] == ["0.0.0.0/0"] * 4 + ["1.1.1.1/32"]
    assert reader.quarantine.count == 0
    assert dict(reader.quarantine.ignored) == {"other address family": 10, "open": 1}


def line(**neighbor: Any) -> dict[str, Any]:
    ends = {"address": {"local": "192.0.2.9", "peer": "192.0.2.1"}, "asn": {"peer": 65011}}
    return {"exabgp": "5.0.0", "time": 1.5, "type": "update", "neighbor": {**ends, **neighbor}}


def announced(as_path: object) -> dict[str, Any]:
    update = {
        "attribute": {"as-path": as_path},
        "announce": {"ipv4 unicast": {"192.0.2.1": [{"nlri": "203.0.113.0/24"}]}},
    }
    return line(message={"update": update})


def test_exabgp_4_is_refused_by_name() -> None:
    reader = exabgp()
    old = {**announced([65012, 65099]), "exabgp": "4.2.21"}
    assert reader.read(json.dumps(old), NOW) == []
    assert reader.read(json.dumps(announced([65012, 65099])), NOW) == []
    assert dict(reader.quarantine.reasons) == {
        "JSON of exabgp 4.2.21: exabgp 5 is needed": 1,
        "an AS path as exabgp 4 writes it, without segments": 1,
    }


def test_segments_keep_their_kind_and_their_order() -> None:
    path = {
        "10": {"element": "as-set", "value": [7, 9]},
        "2": {"element": "as-sequence", "value": [1, "2.3"]},
        "0": {"element": "confed-sequence", "value": [65001]},
    }
    (update,) = exabgp().read(json.dumps(announced(path)), NOW)
    assert update.as_path == "(65001) 1 131075 {7,9}"


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("nonsense", "no JSON"),
        ("[]", "the line is no object"),
        ("{}", "no line of exabgp"),
        (json.dumps({**line(), "time": "now"}), "time is no time"),
        (json.dumps({**line(), "time": 1e300}), "time is no time in seconds"),
        (json.dumps(line()), "message is no object"),
        (json.dumps(line(address={"peer": "nowhere"})), "an address that is none"),
        (json.dumps(line(asn={"peer": -1})), "asn is no AS number"),
        (json.dumps(announced({"0": {"element": "loop"}})),
         "an AS path with an unknown kind of segment"),
        ("[" * 5000, "no JSON"),
    ],
    ids=["words", "list", "empty", "time", "huge time", "message", "address", "asn", "segment",
         "deep"],
)  # fmt: skip
def test_what_is_malformed_is_counted_with_its_reason(said: str, reason: str) -> None:
    reader = exabgp()
    assert reader.read(said, NOW) == []
    assert dict(reader.quarantine.reasons) == {reason: 1}
    assert reader.quarantine.latest[0].excerpt == said[:120]


@pytest.mark.needs("data")
def test_recorded_messages_of_ris_live(shared_data: Path) -> None:
    """Five lines: three readable updates, one that names no peer, one complaint of the service."""
    reader = ris()
    text = (shared_data / "bgp/json/ris_live_samples.jsonl").read_text()
    updates = [update for one in text.splitlines() for update in reader.read(one)]
    assert [short(update)[:3] for update in updates] == [
        ("withdraw", "41.0.0.0/24", ""),
        ("announce", "102.221.15.0/24", "37697 328810"),
        ("announce", "102.221.16.0/24", "37697 328810"),
        ("announce", "173.82.228.0/24", "50628 35280 6453 4637 16509"),
        ("announce", "2001:db8::/32", "207841 6939"),
    ]
    assert dict(reader.quarantine.reasons) == {"peer is missing": 1}
    assert reader.last_error == "bad subscription"
    assert reader.quarantine.ignored["med that is no number"] == 1
    assert [update.collector for update in updates[:4]] == ["rrc19", "rrc19", "rrc19", "rrc21"]
    assert updates[3].communities == ("6453:86", "6453:3000")
    assert all(update.arrived_unix_ns == update.time_unix_ns for update in updates)


def ris_message(**data: Any) -> str:
    head = {"timestamp": 1_700_000_000.25, "peer": "2001:db8::1", "peer_asn": "64500",
            "id": "2001:db8::1-018c0000abcd0003", "host": "rrc00.ripe.net"}  # fmt: skip
    return json.dumps({"type": "ris_message", "data": {**head, **data}})


def test_sets_sessions_and_two_next_hops_of_ris_live() -> None:
    reader = ris()
    group = {"next_hop": "2001:db8::9,fe80::1", "prefixes": ["2001:db8:5::/48"]}
    (update,) = reader.read(
        ris_message(type="UPDATE", path=[64500, [7, 9]], origin="IGP", announcements=[group]), NOW
    )
    assert (update.as_path, update.next_hop, update.origin) == ("64500 {7,9}", "2001:db8::9", "igp")
    assert (update.collector, update.arrived_unix_ns) == ("rrc00", NOW)
    (up,) = reader.read(ris_message(type="RIS_PEER_STATE", state="connected"), NOW)
    (down,) = reader.read(ris_message(type="RIS_PEER_STATE", state="down"), NOW)
    (told,) = reader.read(
        ris_message(type="NOTIFICATION", notification={"code": 6, "subcode": 2}), NOW
    )
    kinds = [up.kind, down.kind, told.kind]
    assert kinds == [UpdateKind.PEER_UP, UpdateKind.PEER_DOWN, UpdateKind.PEER_DOWN]
    assert told.detail == "notification 6/2"
    assert reader.read(ris_message(type="KEEPALIVE"), NOW) == []
    assert reader.read('{"type":"pong","data":null}', NOW) == []
    assert reader.quarantine.count == 0


def test_withdrawals_come_before_announcements_and_ids_sort_so() -> None:
    group = {"next_hop": "2001:db8::9", "prefixes": ["2001:db8:5::/48", "2001:db8:6::/48"]}
    updates = ris().read(
        ris_message(type="UPDATE", withdrawals=["2001:db8:7::/48"], announcements=[group]), NOW
    )
    assert Counter(update.kind.value for update in updates) == {"withdraw": 1, "announce": 2}
    assert updates[0].kind is UpdateKind.WITHDRAW
    assert [update.id for update in updates] == sorted(update.id for update in updates)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ('{"type":"ris_message","data":7}', "data is no object"),
        ('{"type":"something"}', "no message of RIS Live"),
        (ris_message(type="TEAPOT"), "an unknown kind of message"),
        (ris_message(type="UPDATE", path="1 2", announcements=[{}]), "path is no list"),
        (ris_message(type="UPDATE", announcements=[{"prefixes": ["10.0.0.0/33"]}]),
         "a prefix that is none"),
        (ris_message(type="UPDATE", announcements=[{"prefixes": [5]}]), "a prefix that is none"),
        (ris_message(type="UPDATE", withdrawals={}), "withdrawals is no list"),
    ],
    ids=["data", "type", "kind", "path", "length", "number", "withdrawals"],
)  # fmt: skip
def test_a_message_that_is_malformed_is_counted(message: str, reason: str) -> None:
    reader = ris()
    assert reader.read(message, NOW) == []
    assert dict(reader.quarantine.reasons) == {reason: 1}


def test_what_is_asked_of_the_service() -> None:
    asked = json.loads(subscription("203.0.113.7/32", host="rrc00", less_specific=True))
    assert asked["type"] == "ris_subscribe"
    assert asked["data"]["prefix"] == "203.0.113.7/32"
    assert asked["data"]["moreSpecific"]
    assert asked["data"]["lessSpecific"]
    assert asked["data"]["host"] == "rrc00"
    assert json.loads(ping()) == {"type": "ping"}
