"""Frames of samples: what is taken, what is refused and in which words."""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from pathbudget.analysis.evaluate import EvaluationOptions, evaluate
from pathbudget.analysis.frames import (
    FrameError,
    envelopes_frame,
    evaluate_frames,
    measurements_of,
    samples_frame,
)
from pathbudget.probes.record import (
    AddressFamily,
    Failure,
    FailureKind,
    Measurement,
    NoiseFloor,
    Sample,
    Stage,
    Stamps,
    Target,
    Transport,
    Vantage,
)
from pathbudget.sites.catalogue import Catalogue, Tier

START = 1_772_323_200_000_000_000
TIER = Tier("chat", "Chat", 800.0, {"network": 45.0}, 95.0, "warm", 4000, {"warm": 1.0})
CATALOGUE = Catalogue(tiers={"chat": TIER})


def measurement(number: int = 0, **given: Any) -> Measurement:
    lost = Failure(FailureKind.TIMEOUT, Stage.WAIT, "no answer")
    samples = tuple(
        Sample(i, "rtt", START + i * 10**9, 20_000_000 + i % 7 * 1000, stamps=Stamps(0, 1, None),
               flags=("host_busy",) if i == 3 else (), notes={"ttl": 3} if i == 4 else None)
        if i % 50 else Sample(i, "rtt", START + i * 10**9, failure=lost)
        for i in range(120)
    )  # fmt: skip
    plain: dict[str, Any] = {
        "id": f"m-{number}",
        "vantage": Vantage("dallas-1", "us-south", asn=64500, latitude=32.8, longitude=-96.8),
        "target": Target("edge", "edge.example", "stemmons", 443),
        "probe": "icmp",
        "started_unix_ns": START,
        "samples": samples,
        "address": "192.0.2.1",
        "family": AddressFamily.IPV4,
        "options": {"size": 56},
        "noise": NoiseFloor(20_000, samples[1].clock_source, 1, 2),
        "counters": {"late": 2},
    }
    return Measurement(**plain | given)


def frame(**columns: Any) -> pd.DataFrame:
    """A frame that is right, but for what is given; None takes a column away."""
    plain: dict[str, Any] = {
        "region": ["eu"] * 3,
        "site": ["fra"] * 3,
        "metric": ["rtt"] * 3,
        "sent": pd.date_range("2026-03-01", periods=3, freq="s", tz="UTC"),
        "value_ns": [11_000_000, 12_000_000, None],
        "failure_kind": [None, None, "timeout"],
    }
    return pd.DataFrame({k: v for k, v in (plain | columns).items() if v is not None})


def test_two_frames_keep_everything() -> None:
    before = [measurement(0), measurement(1, transport=Transport.TLS, probe="tls", samples=())]
    after = list(measurements_of(samples_frame(before), envelopes_frame(before)))
    assert after == before


def test_frames_evaluate_as_the_measurements_do() -> None:
    before = [measurement()]
    options = EvaluationOptions(choose=(1,))
    both = evaluate_frames(
        samples_frame(before), CATALOGUE, options, envelopes=envelopes_frame(before)
    )
    assert both == evaluate(before, CATALOGUE, options)


def test_few_columns_are_enough() -> None:
    found = list(measurements_of(frame()))
    assert len(found) == 1
    one = found[0]
    assert (one.vantage.region, one.vantage.name, one.target.site) == ("eu", "eu", "fra")
    assert [sample.value_ns for sample in one.samples] == [11_000_000, 12_000_000, None]
    lost = one.samples[2].failure
    assert lost is not None
    assert (lost.kind, lost.stage) == (FailureKind.TIMEOUT, Stage.WAIT)
    assert one.samples[0].sent_unix_ns == START
    assert one.started_unix_ns == START


def test_other_zones_are_the_same_moments() -> None:
    berlin = frame(sent=pd.date_range("2026-03-01 01:00", periods=3, freq="s", tz="Europe/Berlin"))
    assert list(measurements_of(berlin)) == list(measurements_of(frame()))


def test_microsecond_times_are_scaled() -> None:
    times = pd.date_range("2026-03-01", periods=3, freq="s", tz="UTC").as_unit("us")
    assert list(measurements_of(frame(sent=times))) == list(measurements_of(frame()))


def test_rows_of_two_places_are_two_measurements() -> None:
    found = list(measurements_of(frame(site=["fra", "ams", "fra"])))
    assert [(one.target.site, len(one.samples)) for one in found] == [("ams", 1), ("fra", 2)]


def test_no_rows_are_no_measurements() -> None:
    assert list(measurements_of(frame().iloc[:0])) == []


def test_any_index_will_do() -> None:
    shuffled = frame().set_index(pd.Index([7, 7, 7]))
    assert list(measurements_of(shuffled)) == list(measurements_of(frame()))


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no metric": ({"metric": None}, "metric: missing"),
    "no place": ({"region": None}, "region or vantage: missing"),
    "no time": ({"sent": None}, "sent or sent_unix_ns: missing"),
    "milliseconds": (
        {"value_ns": None, "value_ms": [11.0, 12.0, None]},
        "value_ns: missing; value_ms is there, and numbers are whole nanoseconds here",
    ),
    "fractions": ({"value_ns": [11.5, 12.0, None]}, "value_ns: row 0 is 11.5, no whole number"),
    "tiny": ({"value_ns": [11, 12, None]}, "value_ns: the largest number is 12, and no delay"),
    "infinite": ({"value_ns": [1e7, float("inf"), None]}, "value_ns: row 1 is infinite; a loss"),
    "text": ({"value_ns": ["a", "b", "c"]}, "value_ns: holds text"),
    "a hole": ({"failure_kind": None}, "value_ns: row 2 has no number, and no failure_kind"),
    "both": (
        {"failure_kind": ["timeout", None, "timeout"]},
        "failure_kind: row 0 has a number too",
    ),
    "a word": ({"failure_kind": [None, None, "gone"]}, "failure_kind: row 2 says 'gone'; one of:"),
    "a family": ({"family": ["v4"] * 3}, "family: row 0 says 'v4'; one of: ipv4, ipv6"),
    "no zone": (
        {"sent": pd.date_range("2026-03-01", periods=3, freq="s")},
        "sent: has no time zone; say which",
    ),
    "no dates": ({"sent": ["2026-03-01"] * 3}, "sent: no times; pd.to_datetime"),
    "a lost time": (
        {"sent": pd.to_datetime(["2026-03-01", "", "2026-03-01"], utc=True)},
        "sent: row 1 has no time",
    ),
    "seconds": (
        {"sent": None, "sent_unix_ns": [1_772_323_200] * 3},
        "sent_unix_ns: row 0 is 1772323200; nanoseconds since 1970",
    ),
    "no name": ({"site": ["fra", None, "fra"]}, "site: row 1 has no name"),
    "empty name": ({"site": ["fra", "fra", ""]}, "site: row 2 has no name"),
    "a typing error": ({"addres_": ["192.0.2.1"] * 3}, "addres_: unknown column; is it address?"),
    "a stranger": ({"hour": [1, 2, 3]}, 'hour: unknown column; drop it, or say extra="ignore"'),
    "a timedelta": (
        {"value_ns": pd.to_timedelta([1, 2, 3], unit="ms")},
        "value_ns: is a timedelta",
    ),
    "too long": ({"value_ns": [1e300, 5e6, None]}, "value_ns: row 0 is 1e+300, beyond 64 bits"),
    "too long for all": (
        {"value_ns": np.array([2**64 - 1, 1, 1], dtype=np.uint64)},
        "value_ns: row 0 is 1.84467e+19, beyond 64 bits",
    ),
    "truth": ({"value_ns": [True, False, None]}, "value_ns: holds a bool; whole numbers"),
    "complex": ({"value_ns": [1 + 2j, 2, 3]}, "value_ns: is complex; whole numbers"),
    "bytes": ({"value_ns": [b"1", b"2", b"3"]}, "value_ns: holds a bytes; whole numbers"),
    "names of bytes": ({"region": [b"eu"] * 3}, "region: row 0 is a bytes; text is expected"),
    "half a character": (
        {"region": pd.Series(["\ud800"] * 3, dtype=object)},
        "region: holds what is no text",
    ),
    "far away": (
        {"sent": pd.to_datetime(["2999-01-01"] * 3).as_unit("s").tz_localize("UTC")},
        "sent: holds times beyond the years 1678 to 2261",
    ),
    "long ago": (
        {"sent": pd.date_range("1960-01-01", periods=3, tz="UTC")},
        "sent: row 0 is 1960-01-01 00:00:00+00:00; a time after 1973 is expected",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_named(what: str) -> None:
    columns, message = WRONG[what]
    with pytest.raises(FrameError) as raised:
        list(measurements_of(frame(**columns)))
    assert str(raised.value).startswith(message)


def test_a_column_that_is_there_twice() -> None:
    both = pd.concat([frame(), frame()[["site"]]], axis=1)
    with pytest.raises(FrameError, match=r"^site: this column is there twice"):
        list(measurements_of(both))


def test_strangers_may_be_passed_over() -> None:
    found = list(measurements_of(frame(hour=[1, 2, 3]), extra="ignore"))
    assert found == list(measurements_of(frame()))


def test_samples_without_their_envelope() -> None:
    before = [measurement(0), measurement(1)]
    samples, envelopes = samples_frame(before), envelopes_frame(before)
    with pytest.raises(FrameError, match=r"^measurement_id: m-1 has no envelope"):
        list(measurements_of(samples, envelopes.iloc[:1]))
    with pytest.raises(FrameError, match="0 of 120 samples"):
        list(measurements_of(samples.iloc[:120], envelopes))


def test_one_measurement_of_two_places() -> None:
    mixed = frame(measurement_id=["m"] * 3, address=["192.0.2.1", "192.0.2.2", "192.0.2.1"])
    with pytest.raises(FrameError, match=r"^address: rows of one measurement_id differ in it"):
        list(measurements_of(mixed))


@pytest.mark.parametrize("given", [None, [1], frame()["region"]], ids=["none", "list", "series"])
def test_only_frames_are_taken(given: Any) -> None:
    with pytest.raises(FrameError, match=r"^samples: a \w+; a data frame of pandas is expected"):
        list(measurements_of(given))
    with pytest.raises(FrameError, match=r"^envelopes: a \w+; a data frame of pandas is expected"):
        list(measurements_of(samples_frame([measurement()]), [1]))  # type: ignore[arg-type]


def test_columns_of_any_make() -> None:
    plain = frame()
    expected = list(measurements_of(plain))
    kinds: list[pd.DataFrame] = [
        plain.convert_dtypes(),
        plain.convert_dtypes(dtype_backend="pyarrow"),
        plain.assign(sent=plain.sent.astype(pd.ArrowDtype(pa.timestamp("us", "Europe/Paris")))),
        plain.astype(dict.fromkeys(("region", "site", "metric", "failure_kind"), "category")),
        plain.astype({"value_ns": object}),
        plain.assign(value_ns=pd.Series(["11000000", "12000000", None], dtype=object)),
    ]
    for kind in kinds:
        assert list(measurements_of(kind)) == expected


def test_large_numbers_beside_absent_ones_stay_exact() -> None:
    exact = START + 1
    flows = pd.Series([exact, None, exact], dtype=object)
    found = next(measurements_of(frame(sent=None, sent_unix_ns=[exact] * 3, flow=flows)))
    assert [sample.flow for sample in found.samples] == [exact, None, exact]


def test_one_flag_is_no_row_of_letters() -> None:
    found = next(measurements_of(frame(flags=["host_busy", None, ["a", "b"]])))
    assert [sample.flags for sample in found.samples] == [("host_busy",), (), ("a", "b")]


def test_samples_in_another_order_are_the_same() -> None:
    before = [measurement(0), measurement(1)]
    samples, envelopes = samples_frame(before), envelopes_frame(before)
    mixed = samples.sample(frac=1, random_state=1)
    assert list(measurements_of(mixed, envelopes)) == before
    with pytest.raises(FrameError, match=r"^measurement m-0: 0 of 120 samples are there"):
        list(measurements_of(samples.iloc[:0], envelopes))


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("counters", [None]),
        ("counters", "late"),
        ("counters", [("late", True)]),
        ("schema", "two"),
        ("vantage_asn", {"a": 1}),
        ("region", 5),
        ("noise_receive_offload", 2),
        ("started_unix_ns", b"x"),
    ],
    ids=lambda value: str(value),
)
def test_envelopes_that_are_wrong(column: str, value: Any) -> None:
    before = [measurement()]
    broken = envelopes_frame(before).assign(**{column: pd.Series([value], dtype=object)})
    with pytest.raises(FrameError, match=rf"^{column}: "):
        list(measurements_of(samples_frame(before), broken))
