"""What the report says of packets in a row."""

import msgspec
import numpy as np
from tests.variation.simulated_paths import Way, measurement_of, samples_of, simulate

from pathbudget.analysis.evaluate import EvaluationOptions, evaluate
from pathbudget.analysis.report.html import render_html
from pathbudget.analysis.report.json_report import render_json
from pathbudget.analysis.report.markdown import render_markdown
from pathbudget.analysis.report.words import fine_interval, fine_ms
from pathbudget.analysis.results import Evaluation
from pathbudget.probes.record import Measurement
from pathbudget.sites.catalogue import Catalogue


def evaluated(*measurements: Measurement) -> Evaluation:
    options = EvaluationOptions(tiers=(), title="Variation")
    return evaluate(measurements, Catalogue({}, {}, {}), options)


def row(text: str, start: str) -> str:
    (found,) = (line for line in text.splitlines() if line.startswith(start))
    return found


def test_both_directions_stand_in_the_report_with_their_definitions() -> None:
    found = evaluated(measurement_of(samples_of(simulate(1, n=1000, step_ms=40.0))))
    text = render_markdown(found)
    assert "PDV p95" in text
    assert "RFC 5481" in text
    name = "| west | alpha | stamp, west-1 to alpha-edge, ipv4 |"
    assert row(text, f"{name} there | 1,000 |")
    assert row(text, f"{name} round trip | 1,000 |")
    at_a_glance = text.partition("There and back")[2].partition("Variation, loss and order")[0]
    assert "| Variation there, p95 | Variation back, p95 | Lost there | Lost back |" in at_a_glance
    (both,) = (line for line in at_a_glance.splitlines() if line.startswith("| west | alpha |"))
    assert len(both.split(" | ")) == 7
    assert "nobody vouches" in text
    assert "stepped" in text
    assert render_html(found)


def test_a_metro_path_is_told_in_microseconds_with_the_noise_floor_beside_it() -> None:
    near = Way(0.15, 1.5, 0.02)
    found = evaluated(measurement_of(samples_of(simulate(2, n=500, out=near, back=near))))
    text = render_markdown(found)
    (stream,) = found.streams
    p50 = stream.ways[0].pdv_p50_ms
    assert p50 is not None
    assert f"{1000 * (p50.value_ms or 0):.0f} us" in text
    assert "noise floor 10 us" in text


def test_the_json_report_has_every_stream_and_reads_back() -> None:
    found = evaluated(measurement_of(samples_of(simulate(3, n=300))))
    again = msgspec.json.decode(render_json(found), type=Evaluation)
    assert again == found
    assert len(again.streams) == 1
    assert [way.way for way in again.streams[0].ways] == ["forward", "reverse", "round_trip"]


def test_no_two_definitions_share_a_word() -> None:
    """Every field of a variation says by which definition it was made."""
    found = evaluated(measurement_of(samples_of(simulate(4, n=300))))
    names = list(msgspec.to_builtins(found.streams[0].ways[0]))
    assert not any("jitter" in name for name in names)
    assert {"pdv_p99_ms", "ipdv_p99_ms"} <= set(names)
    assert "interarrival_jitter_ms" in found.streams[0].ways[0].extras


def test_small_times_are_written_in_microseconds() -> None:
    assert fine_ms(0.412) == "412 us"
    assert fine_ms(0.0042) == "4.2 us"
    assert fine_ms(-0.05) == "-50 us"
    assert fine_ms(0.0) == "0 us"
    assert fine_ms(4.2) == "4.20 ms"
    assert fine_ms(None) == fine_ms(float(np.inf)) == "no limit"
    assert fine_interval(0.1, None) == "100 us to no limit"
