"""Variation by direction, order, outages, flows, trains and load: what packets in a row tell."""

from pathbudget.analysis.report.document import (
    Block,
    Cell,
    Paragraph,
    Row,
    Section,
    Table,
    column,
    number,
    shortened,
)
from pathbudget.analysis.report.lookup import Lookup
from pathbudget.analysis.report.words import (
    NOT_KNOWN,
    bare_ms,
    fine_interval,
    fine_ms,
    share,
)
from pathbudget.analysis.stream_results import (
    Bounded,
    OneWay,
    StreamSummary,
    TrainInfo,
    UnderLoad,
    Variation,
    Way,
)

ROWS = 1000
DIRECTIONS_SHOWN = 60

WAY_WORDS = {Way.FORWARD: "there", Way.REVERSE: "back", Way.ROUND_TRIP: "round trip"}

TOO_FEW = "too few packets"


def stream_section(lookup: Lookup) -> Section:
    """Everything that needs packets one by one."""
    streams = lookup.evaluation.streams
    if not streams:
        text = "No packets were recorded one by one, so nothing can be said of their variation."
        return Section("variation", "Variation and loss by direction", (Paragraph(text),))
    blocks: list[Block] = [
        Paragraph(
            "How unsteady the paths are, and which way. Variation (PDV, RFC 5481) is how much "
            "longer a packet took than the quickest one of its path: at p95, 95 of 100 that "
            "arrived took at most that much longer. Under each number stands its interval."
        ),
        *_directions_table(lookup),
        Paragraph(
            "Where a reflector runs at the site, the way there and the way back are told apart. "
            "Its clock need not agree with ours: a constant difference does not matter to "
            "variation, the drift is taken out, and what remains of it is in the interval. "
            "One-way delays do depend on the clocks and stand with the error that those state. "
            "IPDV is the difference between a packet and the one sent before it (RFC 3393)."
        ),
        _variation_table(lookup),
    ]
    if any(way.owd is not None for stream in streams for way in stream.ways):
        blocks.append(_clock_table(lookup))
    if any(stream.trains for stream in streams):
        blocks.append(_train_table(lookup))
    if lookup.evaluation.under_load:
        blocks.append(_load_table(lookup))
    return Section("variation", "Variation and loss by direction", tuple(blocks))


def _directions_table(lookup: Lookup) -> tuple[Table, ...]:
    """Both directions of a pair in one row, where a reflector told them apart."""
    rows: list[Row] = []
    for stream in lookup.evaluation.streams:
        ways = {way.way: way for way in stream.ways}
        if stream.loaded or not {Way.FORWARD, Way.REVERSE} <= set(ways):
            continue
        there, back = ways[Way.FORWARD], ways[Way.REVERSE]
        variation = (_bounded(there.pdv_p95_ms), _bounded(back.pdv_p95_ms))
        place = (lookup.region(stream.region), lookup.site(stream.site))
        floor = NOT_KNOWN if stream.noise_floor_ms is None else fine_ms(stream.noise_floor_ms)
        rows.append((*place, *variation, _loss(there), _loss(back), floor))
    if not rows:
        return ()
    shown, note = shortened(tuple(rows), DIRECTIONS_SHOWN, "rows")
    heads = (
        *(column(word) for word in ("Region", "Site")),
        *(number(f"Variation {way}, p95") for way in ("there", "back")),
        *(number(f"Lost {way}") for way in ("there", "back")),
        number("Noise floor"),
    )
    return (Table("There and back", heads, shown, note),)


def _name(stream: StreamSummary) -> str:
    parts = (f"{stream.probe}, {stream.vantage} to {stream.target}", stream.family)
    words = ", ".join(part for part in parts if part)
    return words + (", under load" if stream.loaded else "")


def _variation_table(lookup: Lookup) -> Table:
    rows = tuple(
        _variation_row(lookup, stream, way)
        for stream in lookup.evaluation.streams
        for way in stream.ways
    )
    shown, note = shortened(rows, ROWS, "rows")
    heads = (
        *(column(word) for word in ("Region", "Site", "Packets of", "Way")),
        number("Sent"),
        number("Lost"),
        number("PDV p50"),
        number("PDV p95"),
        number("PDV p99"),
        number("IPDV p1 to p99"),
        number("Out of order"),
        number("Noise floor"),
    )
    return Table("Variation, loss and order of every way", heads, shown, note, folded=True)


def _variation_row(lookup: Lookup, stream: StreamSummary, way: Variation) -> Row:
    floor = stream.noise_floor_ms
    return (
        lookup.region(stream.region),
        lookup.site(stream.site),
        _name(stream),
        WAY_WORDS[way.way],
        f"{way.sent:,}",
        _loss(way),
        *(_bounded(one) for one in (way.pdv_p50_ms, way.pdv_p95_ms, way.pdv_p99_ms)),
        _span(way.ipdv_p1_ms, way.ipdv_p99_ms),
        "not seen" if way.reordered is None else f"{way.reordered:,}",
        NOT_KNOWN if floor is None else fine_ms(floor),
    )


def _loss(way: Variation) -> Cell:
    details = [f"{share(way.loss_low)} to {share(way.loss_high)}"]
    if way.lost_way_unknown:
        details.append(f"{way.lost_way_unknown:,} more lost, way not known")
    return Cell(share(way.loss_ratio), tuple(details))


def _bounded(value: Bounded | None) -> Cell:
    if value is None:
        return Cell(TOO_FEW)
    return Cell(fine_ms(value.value_ms), (fine_interval(value.low_ms, value.high_ms),))


def _span(low: Bounded | None, high: Bounded | None) -> Cell:
    if low is None or high is None:
        return Cell(TOO_FEW)
    return Cell(fine_interval(low.value_ms, high.value_ms))


def _clock_table(lookup: Lookup) -> Table:
    rows = tuple(
        _clock_row(lookup, stream, way, way.owd)
        for stream in lookup.evaluation.streams
        for way in stream.ways
        if way.owd is not None
    )
    shown, note = shortened(rows, ROWS, "rows")
    heads = (
        *(column(word) for word in ("Region", "Site", "Packets of", "Way", "Clocks")),
        number("One-way delay, as read (ms)"),
        number("Error that the clocks state (ms)"),
        number("What is possible (ms)"),
        number("Skew (ppm)"),
        number("Steps seen"),
    )
    caption = "One-way delay of the packet with the shortest round trip"
    return Table(caption, heads, shown, note, folded=True)


def _clock_row(lookup: Lookup, stream: StreamSummary, way: Variation, owd: OneWay) -> Row:
    pair, error = stream.clock_pair, owd.clock_error_ms
    skew: Cell | str = NOT_KNOWN
    if pair is not None:
        ends = f"{pair.skew_low_ppm:.2f} to {pair.skew_high_ppm:.2f}"
        skew = Cell(f"{pair.skew_ppm:.2f}", (ends,))
    return (
        lookup.region(stream.region),
        lookup.site(stream.site),
        _name(stream),
        WAY_WORDS[way.way],
        owd.clock_state,
        bare_ms(owd.owd_ms),
        "nobody vouches" if error is None else bare_ms(error),
        f"{bare_ms(owd.low_ms)} to {bare_ms(owd.high_ms)}",
        skew,
        str(len(pair.steps)) if pair is not None else NOT_KNOWN,
    )


def _train_table(lookup: Lookup) -> Table:
    rows = tuple(
        _train_row(lookup, stream, train)
        for stream in lookup.evaluation.streams
        for train in stream.trains
    )
    shown, note = shortened(rows, ROWS, "rows")
    heads = (
        *(column(word) for word in ("Region", "Site", "Packets of", "Way")),
        number("Trains"),
        number("Packets each"),
        number("Delay of the last over the first, p95"),
        number("Pulled apart by, p50 per packet"),
        number("Lost, first packet"),
        number("Lost, last packet"),
    )
    return Table("Trains: the queue that packets in a row meet", heads, shown, note, folded=True)


def _train_row(lookup: Lookup, stream: StreamSummary, train: TrainInfo) -> Row:
    ends = (train.positions[0], train.positions[-1])
    return (
        lookup.region(stream.region),
        lookup.site(stream.site),
        _name(stream),
        WAY_WORDS[train.way],
        f"{train.trains:,}",
        f"{train.length:,}",
        _bounded(train.growth_p95_ms),
        _bounded(train.dispersion_p50_ms),
        *(share(place.lost / place.sent) if place.sent else NOT_KNOWN for place in ends),
    )


def _load_table(lookup: Lookup) -> Table:
    rows = tuple(_load_row(lookup, one) for one in lookup.evaluation.under_load)
    shown, note = shortened(rows, ROWS, "rows")
    heads = (
        *(column(word) for word in ("Region", "Site", "Series")),
        number("Percentile"),
        number("Idle (ms)"),
        number("Loaded (ms)"),
        number("Added by load"),
        number("Samples idle, loaded"),
    )
    caption = "Under load: no loaded sample is in any other number"
    return Table(caption, heads, shown, note)


def _load_row(lookup: Lookup, one: UnderLoad) -> Row:
    return (
        lookup.region(one.region),
        lookup.site(one.site),
        f"{one.probe} {one.metric}, to {one.target}",
        f"p{one.percentile:g}",
        bare_ms(one.idle_ms),
        bare_ms(one.loaded_ms),
        _bounded(one.added_ms),
        f"{one.idle_n:,}, {one.loaded_n:,}",
    )
