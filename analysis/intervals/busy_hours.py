"""Whether the busy hours were measured: a line of a quiet night says nothing of the evening.

The evening is the local one, by the region's longitude; where that is not known, by UTC nothing can
be said.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from pathbudget.analysis.finding_kinds import FindingKind
from pathbudget.analysis.intervals.timeline import DAY_NS, HOURS
from pathbudget.analysis.results import Finding, RegionInfo
from pathbudget.analysis.track import Track

BUSY = range(18, 23)
"""Local hours in which access networks are fullest: from 18:00 until 23:00."""
LISTED = 12
NOT_IN_THE_EVENING = "the region was never measured in the evening, which was asked for."

Counts = npt.NDArray[np.int64]


def hours_of(tracks: Iterable[Track], longitude: float = 0.0) -> Counts:
    """Samples in each of the 24 hours of the local solar day; of UTC for longitude 0."""
    shift_ns = round(longitude / 360 * DAY_NS)
    counts = np.zeros(HOURS, dtype=np.int64)
    for track in tracks:
        hours = (track.sent_unix_ns + shift_ns) % DAY_NS * HOURS // DAY_NS
        counts += np.bincount(hours, minlength=HOURS)
    return counts


def covers_busy_hours(counts: Counts) -> bool:
    """Whether any sample is of the evening."""
    return bool(counts[BUSY.start : BUSY.stop].any())


def quiet_regions(
    regions: Sequence[RegionInfo], tracks: Mapping[str, Sequence[Track]]
) -> dict[str, Counts]:
    """Regions that were measured, and never in the evening, with their samples by hour."""
    found: dict[str, Counts] = {}
    for region in regions:
        if region.longitude is None or not tracks.get(region.name):
            continue
        counts = hours_of(tracks[region.name], region.longitude)
        if not covers_busy_hours(counts):
            found[region.name] = counts
    return found


def busy_hour_findings(quiet: Mapping[str, Counts]) -> list[Finding]:
    """One finding for all regions that were measured in the same hours."""
    alike: dict[tuple[int, ...], list[str]] = {}
    for name, counts in quiet.items():
        alike.setdefault(tuple(np.flatnonzero(counts).tolist()), []).append(name)
    return [
        Finding(
            kind=FindingKind.BUSY_HOURS_MISSING,
            region=names[0] if len(names) == 1 else "",
            site="",
            text=_text(names, hours),
        )
        for hours, names in sorted(alike.items())
    ]


def _text(names: Sequence[str], hours: Sequence[int]) -> str:
    listed = ", ".join(names[:LISTED]) + (" ..." if len(names) > LISTED else "")
    who = "was" if len(names) == 1 else "were"
    return (
        f"{listed} {who} measured only {spans(hours)} local time and never in the evening "
        f"({BUSY.start}:00 to {BUSY.stop}:00), when paths are fullest: the lines say nothing of it."
    )


def spans(hours: Sequence[int]) -> str:
    """``from 1:00 to 6:00 and from 13:00 to 14:00``; a span may pass midnight."""
    known = set(hours)
    starts = [hour for hour in sorted(known) if (hour - 1) % HOURS not in known]
    words = []
    for start in starts:
        end = start
        while end % HOURS in known:
            end += 1
        words.append(f"from {start}:00 to {end % HOURS}:00")
    return " and ".join(words)
