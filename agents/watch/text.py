"""The series of a book in the text format of Prometheus (version 0.0.4), piece by piece.

The library of Prometheus takes 0.7 s for what 500 series have to say, and holds the interpreter
meanwhile; here the words of a series are put together once for all of its buckets, and between two
series other threads have their turn: the one that measures waits for microseconds.
"""

import functools
import time
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import NamedTuple

from pathbudget.agents.watch.book import MeterBook, SeriesLabels, SeriesMeters
from pathbudget.agents.watch.buckets import BOUNDS_S, NS, Distribution
from pathbudget.agents.watch.outcomes import Outcome
from pathbudget.probes.record import Metric

PREFIX = "pathbudget"
OTHER = "other"
_BUILTIN = frozenset(Metric)
_ENDS = (*(f'le="{bound:.9g}"}} ' for bound in BOUNDS_S), 'le="+Inf"} ')
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


class Family(NamedTuple):
    """One metric: name, type, and what it says."""

    name: str
    kind: str
    help: str
    labels: tuple[str, ...] = SeriesLabels._fields

    @property
    def head(self) -> str:
        """The two lines before its samples."""
        return f"# HELP {self.name} {self.help}\n# TYPE {self.name} {self.kind}\n"


SHOTS = Family(
    f"{PREFIX}_probes_total",
    "counter",
    "Shots by what became of them.",
    (*SeriesLabels._fields, "outcome"),
)
FAILURES = Family(
    f"{PREFIX}_probe_failures_total",
    "counter",
    "Shots without an answer, by kind and stage of the failure.",
    (*SeriesLabels._fields, "kind", "stage"),
)
FLAGS = Family(
    f"{PREFIX}_samples_flagged_total",
    "counter",
    "Samples with a mark, as in late, duplicated or clock_step.",
    (*SeriesLabels._fields, "flag"),
)
LAST = Family(
    f"{PREFIX}_last_sample_timestamp_seconds", "gauge", "When the latest sample was sent."
)
LATENESS = Family(
    f"{PREFIX}_send_lateness_seconds",
    "histogram",
    "How long after their due time shots left.",
    ("agent",),
)
LEFT_OUT = Family(
    f"{PREFIX}_samples_left_out_total",
    "counter",
    "Samples in no distribution, because there are more series than are shown.",
    (),
)
FIXED = (SHOTS, FAILURES, FLAGS, LAST, LATENESS, LEFT_OUT)


@functools.lru_cache(256)
def delay_family(metric: str) -> Family:
    """The family of the distribution of a metric. Words of third parties share one."""
    if metric in _BUILTIN:
        return Family(
            f"{PREFIX}_{metric}_seconds",
            "histogram",
            f"Distribution of {metric} (docs/metrics.md).",
            (*SeriesLabels._fields, "mode"),
        )
    return Family(
        f"{PREFIX}_{OTHER}_seconds",
        "histogram",
        "Distributions of metrics that probes of third parties bring.",
        (*SeriesLabels._fields, "mode", "metric"),
    )


def pieces(book: MeterBook) -> Iterator[str]:
    """Everything in the book. For a thread that is not the one that writes."""
    pages = book.pages()
    yield LATENESS.head
    for agent, lateness in list(book.lateness.items()):
        yield _histogram(LATENESS.name, words_of(LATENESS.labels, (agent,)), lateness)
    yield f"{LEFT_OUT.head}{LEFT_OUT.name} {book.left_out}\n"
    for family, lines in (
        (SHOTS, _shots), (FAILURES, _failures), (FLAGS, _flags), (LAST, _last),
    ):  # fmt: skip
        yield family.head
        for page in pages:
            yield "".join(lines(page))
            time.sleep(0)
    for family, parts in _distributions(pages).items():
        yield family.head
        for words, distribution in parts:
            yield _histogram(family.name, words, distribution)
            time.sleep(0)


def _distributions(
    pages: Iterable[SeriesMeters],
) -> dict[Family, list[tuple[str, Distribution]]]:
    """All distributions of one name stand together, as the format wants it."""
    found: dict[Family, list[tuple[str, Distribution]]] = {}
    for page in pages:
        for (metric, mode), distribution in list(page.delays.items()):
            family = delay_family(metric)
            more = (mode, metric) if len(family.labels) > len(page.labels) + 1 else (mode,)
            words = words_of(family.labels, (*page.labels, *more))
            found.setdefault(family, []).append((words, distribution))
        time.sleep(0)
    return dict(sorted(found.items()))


def words_of(names: Iterable[str], values: Iterable[str]) -> str:
    """``site="dallas",probe="icmp"``, whatever the values hold."""
    return ",".join(
        f'{name}="{value.translate(_ESCAPES)}"' for name, value in zip(names, values, strict=True)
    )


def _shots(page: SeriesMeters) -> Iterator[str]:
    for outcome in Outcome:  # those that have not happened too: a rate begins at 0
        words = words_of(SHOTS.labels, (*page.labels, outcome))
        yield f"{SHOTS.name}{{{words}}} {page.outcomes[outcome]}\n"


def _failures(page: SeriesMeters) -> Iterator[str]:
    for (kind, stage), count in sorted(page.failures.items()):
        words = words_of(FAILURES.labels, (*page.labels, kind, stage))
        yield f"{FAILURES.name}{{{words}}} {count}\n"


def _flags(page: SeriesMeters) -> Iterator[str]:
    for flag, count in sorted(page.flags.items()):
        words = words_of(FLAGS.labels, (*page.labels, flag))
        yield f"{FLAGS.name}{{{words}}} {count}\n"


def _last(page: SeriesMeters) -> Iterator[str]:
    if page.last_unix_ns:
        words = words_of(LAST.labels, page.labels)
        yield f"{LAST.name}{{{words}}} {page.last_unix_ns / NS:.3f}\n"


def _histogram(name: str, words: str, distribution: Distribution) -> str:
    counts = list(accumulate(tuple(distribution.counts)))  # copied at one moment
    total = distribution.sum_ns / NS
    start = f"{name}_bucket{{{words},"
    lines = [f"{start}{end}{count}\n" for end, count in zip(_ENDS, counts, strict=True)]
    lines.append(f"{name}_sum{{{words}}} {total:.9f}\n{name}_count{{{words}}} {counts[-1]}\n")
    return "".join(lines)
