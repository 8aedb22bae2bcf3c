"""Route updates as an Arrow table and back, without loss. Needs pyarrow, as `arrow_schema` does."""

from collections.abc import Sequence
from typing import Any

from pathbudget.probes.arrow_schema import column_list, column_values, schema_of, table_of
from pathbudget.probes.bgp.record import FeedKind, RouteUpdate, UpdateKind
from pathbudget.probes.columns import UPDATE_COLUMNS
from pathbudget.probes.errors import RecordError

import pyarrow as pa  # isort: skip  (after arrow_schema, which says what to install)

UPDATE_SCHEMA_VERSION = 1
UPDATE_SCHEMA = schema_of("bgp_updates", UPDATE_COLUMNS, UPDATE_SCHEMA_VERSION)

_KINDS = {word.value: word for word in UpdateKind}
_FEEDS = {word.value: word for word in FeedKind}


def update_table(updates: Sequence[RouteUpdate]) -> pa.Table:
    """One row per update, `UPDATE_SCHEMA`. Raises RecordError for what cannot be held."""
    return table_of(list(column_values(UPDATE_COLUMNS, updates)), UPDATE_SCHEMA)


def updates(table: pa.Table) -> list[RouteUpdate]:
    """The updates of (a slice of) a table, in its order. Raises RecordError."""
    lists = [column_list(table, column.name) for column in UPDATE_COLUMNS]
    try:
        return [_update(*row) for row in zip(*lists, strict=True)]
    except (KeyError, TypeError) as error:
        raise RecordError(f"table of updates: {error}") from None


def _update(
    name: str | None,
    feed: str,
    feed_kind: str,
    collector: str | None,
    peer_address: str,
    peer_asn: int | None,
    kind: str,
    time_unix_ns: int | None,
    arrived_unix_ns: int | None,
    *rest: Any,
) -> RouteUpdate:
    """In the order of `UPDATE_COLUMNS`."""
    prefix, as_path, origin, next_hop, preference, med, communities, path_id, detail = rest
    if name is None or peer_asn is None or time_unix_ns is None or arrived_unix_ns is None:
        raise TypeError("an update lacks its id, peer or time")
    return RouteUpdate(
        id=name,
        feed=feed,
        feed_kind=_FEEDS[feed_kind],
        peer_address=peer_address,
        peer_asn=peer_asn,
        kind=_KINDS[kind],
        time_unix_ns=time_unix_ns,
        arrived_unix_ns=arrived_unix_ns,
        prefix=prefix or "",
        as_path=as_path or "",
        origin=origin or "",
        next_hop=next_hop or "",
        local_preference=preference,
        med=med,
        communities=tuple(communities or ()),
        path_id=path_id,
        collector=collector or "",
        detail=detail or "",
    )
