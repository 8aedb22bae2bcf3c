"""Fuzz targets of the importers of traces. See tests/fuzzing.py."""

import tempfile
from pathlib import Path

from pathbudget.agents.importers.import_report import ImportReport
from pathbudget.agents.importers.ripe_atlas import read_results
from pathbudget.agents.importers.scamper import read_scamper
from pathbudget.analysis.routes.observations import observe
from pathbudget.probes.codec import decode_line, encode_line
from pathbudget.probes.record import Measurement


def fuzz_one_scamper(data: bytes) -> None:
    """Any bytes as a file of scamper's: nothing raises, everything is imported or counted."""
    report = ImportReport()
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        measurements = list(read_scamper([Path(file.name)], report=report))
    _check(measurements, report)


def fuzz_one_atlas_trace(data: bytes) -> None:
    """Any bytes within a traceroute of RIPE Atlas."""
    report = ImportReport()
    head = (
        b'{"type":"traceroute","msm_id":1,"prb_id":2,"timestamp":3,"dst_addr":"192.0.2.1","result":'
    )
    with tempfile.NamedTemporaryFile() as file:
        file.write(head + data.replace(b"\n", b" ") + b"}")
        file.flush()
        measurements = list(read_results([Path(file.name)], report=report))
    _check(measurements, report)


def _check(measurements: list[Measurement], report: ImportReport) -> None:
    counted = report.measurements + report.malformed
    assert report.results == counted + report.skipped.total() + report.left_out.total()
    assert len(measurements) == report.measurements
    assert report.samples == sum(len(one.samples) for one in measurements)
    assert report.numbers == sum(
        sample.value_ns is not None for one in measurements for sample in one.samples
    )
    for one in measurements:
        assert decode_line(encode_line(one)) == one
        assert all(0 <= (sample.value_ns or 0) < 2**63 for sample in one.samples)
    for observation in observe(measurements):
        assert observation.started_unix_ns <= observation.ended_unix_ns
        assert all(len(flow.hops) <= 255 + 1 for flow in observation.flows)
