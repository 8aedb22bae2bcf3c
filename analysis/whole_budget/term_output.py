"""Terms as a file that `term_files.read_terms` reads back: CSV or TOML."""

import csv
import datetime
import io
import json
import math
from collections.abc import Iterable, Iterator

from pathbudget.analysis.whole_budget.terms import Term

MILLISECOND = 1e6
COLUMNS = ("term", "value_ms", "request", "time", "region", "site", "tier")


def as_csv(terms: Iterable[Term]) -> str:
    """One row per request and term; a failure is the word ``failed``.

    Raises ValueError for a term that is stated as a distribution: rows hold samples.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for term in terms:
        if term.stated:
            raise ValueError(f"{term.name} is stated as a distribution, and rows are samples")
        scope = term.scope
        for value, request, time in _rows(term):
            shown = "failed" if math.isinf(value) else repr(value / MILLISECOND)
            writer.writerow((term.name, shown, request, time, scope.region, scope.site, scope.tier))
    return text.getvalue()


def as_toml(terms: Iterable[Term]) -> str:
    """One ``[[term]]`` table per term, with its samples in the order of the requests, or the
    distribution as it was stated.
    """
    parts: list[str] = []
    for term in terms:
        lines = ["[[term]]", f"name = {_quoted(term.name)}"]
        places = [(key, getattr(term.scope, key)) for key in ("region", "site", "tier")]
        lines += [f"{key} = {_quoted(word)}" for key, word in places if word]
        if term.stated:
            parts.append("\n".join((*lines, *term.stated)) + "\n")
            continue
        rows = list(_rows(term))
        shown = ["inf" if math.isinf(value) else repr(value / MILLISECOND) for value, _, _ in rows]
        lines.append(f"samples_ms = [{', '.join(shown)}]")
        if term.requests:
            lines.append(f"requests = [{', '.join(_quoted(request) for _, request, _ in rows)}]")
        if term.sent_unix_ns:
            lines.append(f"times = [{', '.join(_quoted(time) for _, _, time in rows)}]")
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def iso_time(unix_ns: int) -> str:
    """A moment in UTC, with all its nine digits."""
    seconds, fraction = divmod(unix_ns, 10**9)
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds)  # noqa: DTZ001
    return f"{moment.isoformat()}.{fraction:09d}Z"


def _rows(term: Term) -> Iterator[tuple[float, str, str]]:
    for at, value in enumerate(term.values_ns):
        request = term.requests[at] if term.requests else ""
        time = iso_time(term.sent_unix_ns[at]) if term.sent_unix_ns else ""
        yield float(value), request, time


def _quoted(text: str) -> str:
    """A basic string of TOML; JSON's escapes are among those of TOML."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
