"""Terms out of files of any kind: OTLP exports, results of llmperf, the user's own TOML and CSV."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pathbudget.agents.importers.byte_stream import DamagedError, read_chunks
from pathbudget.agents.telemetry.intake import Problems
from pathbudget.agents.telemetry.otlp_files import read_spans
from pathbudget.analysis.whole_budget.llmperf import LoadTest, read_llmperf
from pathbudget.analysis.whole_budget.spans import TOKENS, Intake, SpanTerms
from pathbudget.analysis.whole_budget.spans_map import SpanMap, default_map, read_span_map
from pathbudget.analysis.whole_budget.term_files import read_terms
from pathbudget.analysis.whole_budget.terms import Term
from pathbudget.probes.errors import ConfigError, Fault

ENDINGS = (".json", ".jsonl", ".ndjson", ".pb", ".otlp", ".bin", ".proto", ".gz", ".bz2")
"""Of the files that are read in a folder."""
HEAD = 4096
TOKEN_COUNTS = ((b"contexttokens", b"generatedtokens"), (b'"input_length"', b'"output_length"'))
"""Of traces that have token counts alone: Azure's, and Mooncake's and what is made like it."""


@dataclass(slots=True)
class Gathered:
    """Terms, and everything that a reader has to know of where they are from."""

    terms: list[Term] = field(default_factory=list[Term])
    """In the order of the files; all traces together give one term each (per scope)."""
    spans: SpanTerms | None = None
    """None where no file was an OTLP export."""
    load_tests: dict[str, LoadTest] = field(default_factory=dict[str, LoadTest])
    problems: Problems = field(default_factory=Problems)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out and why, one sentence each, without their full stops."""
        return (*_of_spans(self.spans), *_of_problems(self.problems), *_of_tests(self.load_tests))


def gather(
    paths: Sequence[Path], span_map: Path | SpanMap | None = None, *, tokens: int = TOKENS
) -> Gathered:
    """The terms of files, or of all files in folders.

    Raises ConfigError where the table or a file of terms has faults, or where there is not one
    term in all of it; what is broken in exports is counted, unless nothing else is there. OSError
    where a file cannot be read.
    """
    table = read_span_map(span_map) if isinstance(span_map, Path) else span_map or default_map()
    gathered = Gathered()
    intake: Intake | None = None
    for path in _files(paths):
        _refuse_token_counts(path)
        if path.suffix.lower() in (".toml", ".csv"):
            gathered.terms += read_terms(path)
        elif _is_llmperf(path):
            test = read_llmperf(path.read_bytes(), str(path), tokens=tokens)
            gathered.load_tests[str(path)] = test
            gathered.terms += test.terms
        else:
            intake = Intake(table) if intake is None else intake
            for span in read_spans(path, gathered.problems):
                intake.add(span)
    if intake is not None:
        gathered.spans = intake.result(tokens=tokens, missing=gathered.problems.missing)
        gathered.terms += gathered.spans.terms
    if not gathered.terms:
        raise ConfigError(_nothing(paths, gathered))
    return gathered


def _nothing(paths: Sequence[Path], gathered: Gathered) -> list[Fault]:
    faults = list(gathered.problems.faults)
    if not faults:
        files = ", ".join(str(path) for path in paths)
        notes = "; ".join(gathered.notes) or "no spans"
        expected = "spans that the table maps to terms (pathbudget telemetry map)"
        faults.append(Fault(files, "", f"gives no term: {notes}", expected))
    elif (more := gathered.problems.count - len(faults)) > 0:
        files = ", ".join(str(path) for path in paths)
        faults.append(Fault(files, "", f"{more:,} more that cannot be read", "OTLP exports"))
    return faults


def _refuse_token_counts(path: Path) -> None:
    """Published traces of services that have how many tokens each request had, and no times: what
    they tell of a budget is the size of its prompts. Raises ConfigError.
    """
    first = _head(path).split(b"\n", 1)[0].lower()
    if any(all(word in first for word in words) for words in TOKEN_COUNTS):
        expected = "times; the size of prompts is for budget what-if --lever prompt=BYTES"
        raise ConfigError([Fault(str(path), "", "has counts of tokens and no times", expected)])


def _files(paths: Sequence[Path]) -> list[Path]:
    """The files, and those of folders in the order of their names."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = [one for one in sorted(path.iterdir()) if one.suffix.lower() in ENDINGS]
            if not inside:
                raise ConfigError([Fault(str(path), "", "has no export in it", "OTLP files")])
            found += inside
        else:
            found.append(path)
    return found


def _is_llmperf(path: Path) -> bool:
    if path.suffix.lower() != ".json":
        return False
    head = _head(path)
    return head.lstrip()[:1] == b"[" and b'"ttft_s"' in head


def _head(path: Path) -> bytes:
    """The beginning of a file, unpacked; empty where it is damaged, which its reader tells."""
    try:
        return next(read_chunks(path, lambda _count: None), b"")[:HEAD]
    except DamagedError:
        return b""


def _of_spans(spans: SpanTerms | None) -> list[str]:
    if spans is None:
        return []
    notes = [f"{count} spans left out: {why}" for why, count in _largest(spans.left_out)]
    notes += [f"{count} of {spans.traces} traces: {what}" for what, count in _largest(spans.notes)]
    if spans.moved:
        notes.append(f"{spans.moved} spans lay outside of their parent by another clock: moved")
    return notes


def _of_problems(problems: Problems) -> list[str]:
    notes = [f"{count} spans unreadable: {why}" for why, count in _largest(problems.spans)]
    if problems.parts:
        notes.append(f"{problems.parts} pieces of files unreadable")
    notes += [f"{count} {what}" for what, count in _largest(problems.others)]
    return notes


def _of_tests(tests: dict[str, LoadTest]) -> list[str]:
    notes: list[str] = []
    for file, test in tests.items():
        if test.failed:
            notes.append(f"{file}: {test.failed} of {test.requests} requests failed: losses")
        if test.short:
            notes.append(f"{file}: {test.short} answers shorter than the test wanted: kept")
        if test.without_rate:
            notes.append(f"{file}: {test.without_rate} answers of one token: no time per token")
    return notes


def _largest(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: -item[1])
