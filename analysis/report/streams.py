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
            "PDV is the delay over the smallest one of the same path (RFC 5481), IPDV the delay "
            "less that of the packet sent before (RFC 3393, signed); both of packets that arrived. "
            "There and back are told apart by a reflector; the offset of its clock cancels, its "
            "skew is taken out, and what is left of it is in the interval. A one-way delay is as "
            "good as the clocks say they are, and stands with that error."
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
