"""The envelopes of a pair of Parquet files, as columns: which rows are of which group.

A group is all that a series takes from its measurement. Measurements of a lake are many and their
groups few, so a group is worked out once and each measurement has the number of its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from pathbudget.analysis.series import place_of, transport_of
from pathbudget.analysis.variants import VARIANTS, variant_of
from pathbudget.probes.agent_health import AGENT
from pathbudget.probes.errors import StoreError
from pathbudget.probes.record import AddressFamily, Measurement, Target, Transport, Vantage

Numbers = npt.NDArray[np.int64]

GROUP_COLUMNS = (
    *("vantage", "region", "vantage_latitude", "vantage_longitude"),
    *("target", "site", "probe", "transport", "address", "family"),
)
"""Beside the options of probes whose options make several series."""

NO_FLOOR = -1
"""Of a measurement whose host does not say how fine it can measure."""


@dataclass(frozen=True, slots=True)
class FilePair:
    """Measurements and their samples: two files of one name, rows in the same order."""

    measurements: Path
    samples: Path


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which measurements are wanted; None is no restriction. `until_unix_ns` is excluded."""

    campaign: str | None = None
    since_unix_ns: int | None = None
    until_unix_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Envelopes:
    """One entry per measurement of a file, in the order of its rows."""

    groups: Sequence[Measurement]
    """An envelope for each group, without what differs within it."""
    group: Numbers
    counts: Numbers
    """How many samples each has."""
    floors_ns: Numbers
    """Noise floor of the measuring host, or `NO_FLOOR`."""
    wanted: npt.NDArray[np.bool_]
    ids: Any
    """Arrow array of their ids, which rise."""

    def present(self) -> list[Measurement]:
        """The groups that have a wanted measurement."""
        return [self.groups[i] for i in np.unique(self.group[self.wanted]).tolist()]

    def samples_by_pair(self) -> dict[tuple[str, str], int]:
        """How many wanted samples there are of each region and site."""
        kept = np.where(self.wanted, self.counts, 0)
        totals = np.bincount(self.group, weights=kept, minlength=len(self.groups))
        found: dict[tuple[str, str], int] = {}
        for envelope, total in zip(self.groups, totals, strict=True):
            place = place_of(envelope)
            found[place] = found.get(place, 0) + int(total)
        return found


def read_envelopes(
    path: Path, wanted: Wanted | None = None, repeated: Sequence[int] = ()
) -> Envelopes:
    """All envelopes of a file; those numbered `repeated` count as not wanted.

    Raises StoreError for a file that cannot be read or is no table of measurements.
    """
    table = _table(path)
    names = [name for name in GROUP_COLUMNS if name in table.column_names]
    codes, words = [], []
    for name in names:
        column = table.column(name).combine_chunks().dictionary_encode()
        codes.append(_filled(column.indices, -1))
        words.append([*column.dictionary.to_pylist(), None])
    variant_codes, variants = _variants(table)
    codes.append(variant_codes)
    words.append([*variants, None])
    names.append("options")
    group, first = _combined(codes, len(table))
    groups = [
        _envelope({name: its[code[i]] for name, its, code in zip(names, words, codes, strict=True)})
        for i in first.tolist()
    ]
    return Envelopes(
        groups=groups,
        group=group,
        counts=_filled(table.column("sample_count").combine_chunks(), 0),
        floors_ns=_filled(table.column("noise_floor_ns").combine_chunks(), NO_FLOOR),
        wanted=_wanted(table, wanted or Wanted(), repeated),
        ids=table.column("id").combine_chunks(),
    )


def _table(path: Path) -> pa.Table:
    columns = [
        "id",
        *GROUP_COLUMNS,
        "campaign",
        "started_unix_ns",
        "noise_floor_ns",
        "options",
        "sample_count",
    ]
    needed = {
        "id",
        "vantage",
        "target",
        "probe",
        "started_unix_ns",
        "noise_floor_ns",
        "sample_count",
    }
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            known = set(file.schema_arrow.names)
            if missing := sorted(needed - known):
                raise StoreError(f"{path}: no table of this product: it has no column {missing[0]}")
            return file.read([c for c in columns if c in known], use_threads=False)
    except (OSError, pa.ArrowException) as error:
        raise StoreError(f"{path}: cannot be read: {str(error).splitlines()[0]}") from None


def _filled(array: Any, instead: int) -> Numbers:
    filled = array.fill_null(instead) if array.null_count else array
    found: Numbers = filled.to_numpy(zero_copy_only=False).astype(np.int64)
    return found


def _variants(table: pa.Table) -> tuple[Numbers, list[str]]:
    """Options of each measurement, where options tell series apart; -1 elsewhere."""
    matters = np.isin(table.column("probe").to_numpy(), [*VARIANTS])
    codes = np.full(len(table), -1, dtype=np.int64)
    if "options" not in table.column_names or not matters.any():
        return codes, []
    column = table.column("options").combine_chunks().dictionary_encode()
    codes[matters] = _filled(column.indices, -1)[matters]
    return codes, [str(text) for text in column.dictionary.to_pylist()]


def _combined(codes: Sequence[Numbers], n: int) -> tuple[Numbers, Numbers]:
    """The number of each combination of codes, and where each stands first."""
    group = np.zeros(n, dtype=np.int64)
    first = np.zeros(min(n, 1), dtype=np.int64)
    for code in codes:
        wide = group * (int(code.max(initial=-1)) + 2) + code + 1
        _, first, group = np.unique(wide, return_index=True, return_inverse=True)
    return group, first


def _envelope(values: Mapping[str, Any]) -> Measurement:
    family, transport = values.get("family"), values.get("transport")
    options = values.get("options")
    return Measurement(
        id="",
        vantage=Vantage(
            values["vantage"] or "",
            values.get("region") or "",
            latitude=values.get("vantage_latitude"),
            longitude=values.get("vantage_longitude"),
        ),
        target=Target(values["target"] or "", "", values.get("site") or ""),
        probe=values["probe"] or "",
        started_unix_ns=0,
        samples=(),
        address=values.get("address") or "",
        family=None if family is None else AddressFamily(family),
        transport=None if transport is None else Transport(transport),
        options={} if options is None else msgspec.json.decode(options),
    )


def _wanted(table: pa.Table, wish: Wanted, repeated: Sequence[int]) -> npt.NDArray[np.bool_]:
    kept: npt.NDArray[np.bool_] = table.column("probe").to_numpy() != AGENT
    if wish.campaign is not None:
        kept &= table.column("campaign").to_numpy() == wish.campaign
    started = _filled(table.column("started_unix_ns").combine_chunks(), 0)
    if wish.since_unix_ns is not None:
        kept &= started >= wish.since_unix_ns
    if wish.until_unix_ns is not None:
        kept &= started < wish.until_unix_ns
    kept[list(repeated)] = False
    return kept


def key_parts(envelope: Measurement, metric: str) -> dict[str, Any]:
    """What the group and the metric say of the key of a series (`series.SeriesKey`)."""
    region, site = place_of(envelope)
    transport = transport_of(envelope, metric)
    return {
        "region": region,
        "site": site,
        "target": envelope.target.name,
        "address": envelope.address,
        "probe": envelope.probe,
        "family": None if envelope.family is None else str(envelope.family),
        "transport": None if transport is None else str(transport),
        "variant": variant_of(envelope),
    }
