"""What one stream of our reflector delivered: a `StreamAttempt` that reads its chunks."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec

from pathbudget.probes.carriers import Moment, Request, span_between
from pathbudget.probes.clock import StampedInterval
from pathbudget.probes.contract import Shot
from pathbudget.probes.failures import closed
from pathbudget.probes.record import ClockSource, Failure, Flag, Metric, Note, Stage
from pathbudget.probes.reflector_http import STREAM_PATH, Chunk
from pathbudget.probes.stream import buffering
from pathbudget.probes.stream import chunk_times as times
from pathbudget.probes.stream.attempt import Arrived, StreamAttempt
from pathbudget.probes.stream.json_lines import JsonLineParser
from pathbudget.probes.stream.lines import StreamFormatError
from pathbudget.probes.stream.samples import CLOCKS, missing, read_late_ns, timed, valued
from pathbudget.probes.stream.shots import Shared
from pathbudget.probes.stream.sse import EventParser

SSE, CHUNKED, WEBSOCKET = "sse", "chunked", "websocket"
_MICROSECOND = 1_000


@dataclass(frozen=True, slots=True)
class StreamPlan:
    """What is asked of the reflector, and how the answer is looked at."""

    chunks: int
    interval_ns: int
    octets: int
    form: str
    buffer_ns: int
    underrun_rate: float
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def path(self) -> str:
        """Path and query of the request."""
        query = f"chunks={self.chunks}&interval_us={self.interval_ns // _MICROSECOND}"
        query += f"&bytes={self.octets}"
        return f"{STREAM_PATH}?{query}" + ("" if self.form == WEBSOCKET else f"&form={self.form}")


def chunk_reader(form: str) -> Callable[[bytes], list[bytes]]:
    """A parser of bodies of this form: pieces in, the JSON of chunks out."""
    if form == SSE:
        events = EventParser()
        return lambda data: [event.data.encode() for event in events.feed(data)]
    return JsonLineParser().feed  # messages of a WebSocket are handed on as lines


_decode = msgspec.json.Decoder(Chunk).decode


class DeliveryAttempt(StreamAttempt):
    """One stream. Its samples: see docs/probes/token_stream.md."""

    def __init__(self, shared: Shared, shot: Shot, plan: StreamPlan) -> None:
        self._plan = plan
        self.extra_ns = plan.chunks * plan.interval_ns
        super().__init__(shared, shot)
        self._parse = chunk_reader(plan.form)
        self._sent: list[int] = []
        """User-space send stamps of the sender."""
        self._left_there: dict[int, int] = {}
        """Its kernel send stamps."""
        self._trailer = False

    def request(self) -> Request:
        """See `StreamAttempt.request`."""
        return Request("GET", self.authority, self._plan.path, self._plan.headers)

    def read(self, data: bytes, moment: Moment) -> None:
        """See `StreamAttempt.read`."""
        for text in self._parse(data):
            try:
                chunk = _decode(text)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise StreamFormatError(f"no chunk of a reflector: {error}") from error
            self._take(chunk, moment)

    def _take(self, chunk: Chunk, moment: Moment) -> None:
        n = len(self.arrived)
        for number, unix_ns in chunk.left:
            if 0 <= number < self._plan.chunks:
                self._left_there.setdefault(number, unix_ns)
        if chunk.last:
            self._trailer = True
            return
        if self._trailer or n >= self._plan.chunks or chunk.n != n:
            raise StreamFormatError(f"chunk {chunk.n} came where {n} was due")
        self._sent.append(chunk.sent_unix_ns)
        self.chunk_came(moment)

    def check_whole(self) -> Failure | None:
        """See `StreamAttempt.check_whole`."""
        if len(self.arrived) < self._plan.chunks:
            return closed(Stage.WAIT)
        return None

    # What is told at the end

    def emit_chunks(self, failure: Failure | None) -> None:
        """See `StreamAttempt.emit_chunks`."""
        for part in range(1, len(self.arrived)):
            self._emit_chunk(part, self.arrived[part - 1], self.arrived[part])
        if failure is not None and self.arrived:
            lost = missing(
                self._shot,
                Metric.DELIVERY_GAP,
                self.arrived[-1].moment.unix_ns,
                failure,
                mode=self._mode,
                part=len(self.arrived),
            )
            self._emit(lost)

    def _emit_chunk(self, part: int, before: Arrived, now: Arrived) -> None:
        flags = gap_flags(before, now)
        gap = timed(
            self._shot,
            Metric.DELIVERY_GAP,
            before.moment,
            now.moment,
            mode=self._mode,
            flags=flags,
            part=part,
        )
        self._emit(gap)
        assert gap.value_ns is not None
        sent_ns, by_kernel = times.send_gap_of(part, self._sent, self._left_there)
        span = StampedInterval(
            gap.value_ns - sent_ns, _variation_clock(gap.clock_source, by_kernel=by_kernel)
        )
        notes = {"send_clock": "kernel" if by_kernel else "user", "send_gap_ns": sent_ns}
        self._emit(
            valued(
                self._shot,
                Metric.DELIVERY_VARIATION,
                gap.sent_unix_ns,
                span,
                mode=self._mode,
                flags=gap.flags,
                notes=notes,
                part=part,
            )
        )

    def summary(self) -> Mapping[str, Note]:
        """See `StreamAttempt.summary`."""
        plan = self._plan
        notes: dict[str, Note] = {
            "form": plan.form,
            "chunks_expected": plan.chunks,
            "chunks_received": len(self.arrived),
        }
        if len(self.arrived) > 1:
            pairs = self._pairs()
            notes |= _figures(plan, pairs)
            notes |= _verdict_notes(pairs)
            notes["coalesced"] = sum(one.joined for one in self.arrived)
            kernel = sum(pair.kernel_sent for pair in pairs)
            notes["send_clock"] = {0: "user", len(pairs): "kernel"}.get(kernel, "mixed")
            late = max(read_late_ns(one.moment) for one in self.arrived)
            notes["read_late_max_us"] = late // _MICROSECOND
        return notes

    def _pairs(self) -> list[buffering.GapPair]:
        pairs: list[buffering.GapPair] = []
        for part in range(1, len(self.arrived)):
            before, now = self.arrived[part - 1], self.arrived[part]
            span = span_between(before.moment, now.moment)
            sent_ns, by_kernel = times.send_gap_of(part, self._sent, self._left_there)
            stamped = now.moment.kernel_unix_ns is not None
            late_ns = read_late_ns(now.moment) if stamped else None
            pairs.append(buffering.GapPair(span.value_ns, sent_ns, late_ns, by_kernel))
        return pairs


def gap_flags(before: Arrived, now: Arrived) -> tuple[str, ...]:
    """A gap from or to a chunk that came together with another one is of low confidence."""
    return (Flag.LOW_CONFIDENCE,) if before.joined or now.joined else ()


def _variation_clock(receive: ClockSource, *, by_kernel: bool) -> ClockSource:
    """The worse of the two clocks: with the sender's user stamps it is no better than one end."""
    send = ClockSource.KERNEL if by_kernel else ClockSource.KERNEL_RECEIVE
    return max(receive, send, key=CLOCKS.index)


def _figures(plan: StreamPlan, pairs: list[buffering.GapPair]) -> dict[str, Note]:
    gaps = [pair.received_ns for pair in pairs]
    send_gaps = [pair.sent_ns for pair in pairs]
    pdv = times.pdv_of(times.variations_of(gaps, send_gaps))
    longest = plan.interval_ns + plan.buffer_ns
    figures: dict[str, Note] = {
        "stalls": times.stalls_in(gaps, longest),
        "stalls_of_sender": times.stalls_in(send_gaps, longest),
        "burst_index": round(times.burst_index_of(gaps), 4),
        "playout_buffer_us": times.playout_buffer_of(pdv, plan.underrun_rate) // _MICROSECOND,
    }
    for name, p in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
        figures[f"pdv_{name}_us"] = times.quantile_of(pdv, p) // _MICROSECOND
    return figures


def _verdict_notes(pairs: list[buffering.GapPair]) -> dict[str, Note]:
    releases = buffering.releases_in(pairs)
    smoothing = buffering.smoothing_in(pairs)
    return {
        "buffered": str(buffering.verdict_of(releases, smoothing)),
        "releases": releases.trials,
        "releases_held": releases.held,
        "false_alarm": float(f"{releases.false_alarm:.2g}"),
        "smoothed": str(smoothing.verdict),
    }
