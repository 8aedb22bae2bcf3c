"""Fuzz targets of the files that the gate reads. See tests/fuzzing.py."""

import contextlib

from pathbudget.analysis.gate.baseline import parse_baseline, render_baseline
from pathbudget.analysis.gate.evaluation_file import parse_evaluation
from pathbudget.analysis.gate.policy_file import parse_policy
from pathbudget.analysis.gate.toml_lines import key_lines
from pathbudget.probes.errors import ConfigError

KEYS = (b"[tier.x]\n", b"tiers = ", b"undecided = ", b"[regression]\ntolerance_ms = ", b"sites = [")


def fuzz_one_policy(data: bytes) -> None:
    """Any text is a policy or a list of faults."""
    text = (KEYS[data[0] % len(KEYS)] if data else b"") + data[1:]
    with contextlib.suppress(ConfigError):
        parse_policy(text.decode("utf-8", "replace"))
    assert all(line >= 1 for line in key_lines(text.decode("latin-1")).values())


def fuzz_one_baseline(data: bytes) -> None:
    """Any bytes are a baseline that can be written again, or a fault."""
    for content in (data, b'{"pathbudget_baseline":1,' + data):
        with contextlib.suppress(ConfigError):
            baseline = parse_baseline(content)
            assert parse_baseline(render_baseline(baseline)) == baseline


def fuzz_one_report(data: bytes) -> None:
    """Any bytes are a report or a fault."""
    for content in (data, b'{"schema":1,"provenance":{},"lines":[' + data):
        with contextlib.suppress(ConfigError):
            parse_evaluation(content)
