"""Measurements to OTLP, in batches: from a store as fast as it goes, or as they come in."""

import contextlib
import queue
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from pathbudget.agents.watch.otlp_client import METRICS, TRACES, OtlpClient, RefusedError
from pathbudget.agents.watch.otlp_messages import SERVICE, metrics_request, trace_request
from pathbudget.probes.errors import WatchError
from pathbudget.probes.record import Measurement

BATCH_OCTETS = 1 << 20
WAITING = 4_096
"""Measurements that a stream holds; what comes beyond is dropped, and counted."""
LINGER_S = 2.0
LAST_S = 5.0


@dataclass(frozen=True, slots=True)
class Signals:
    """What is sent."""

    traces: bool = True
    metrics: bool = True
    service: str = SERVICE


@dataclass(slots=True)
class Batch:
    """Requests of several measurements. Protobuf messages behind one another are one message."""

    signals: Signals
    measurements: int = 0
    traces: bytearray = field(default_factory=bytearray)
    metrics: bytearray = field(default_factory=bytearray)
    spans: int = 0

    def add(self, measurement: Measurement) -> None:
        """Put it behind the others."""
        self.measurements += 1
        service = self.signals.service
        if self.signals.traces:
            request = trace_request([measurement], service)
            self.spans += sum(
                len(scope.spans) for one in request.resource_spans for scope in one.scope_spans
            )
            self.traces += request.SerializeToString()
        if self.signals.metrics:
            self.metrics += metrics_request([measurement], service).SerializeToString()

    @property
    def octets(self) -> int:
        """How large the larger request is."""
        return max(len(self.traces), len(self.metrics))

    def send(self, client: OtlpClient, counts: "Counter[str]") -> None:
        """Post what there is. Raises WatchError."""
        if self.traces:
            counts["spans_rejected"] += client.post(TRACES, bytes(self.traces))
            counts["spans"] += self.spans
        if self.metrics:
            counts["points_rejected"] += client.post(METRICS, bytes(self.metrics))
        counts["measurements"] += self.measurements


def export(
    measurements: Iterable[Measurement], client: OtlpClient, signals: Signals
) -> "Counter[str]":
    """Send all of them; what was sent. Raises WatchError, which names what was not."""
    counts: Counter[str] = Counter()
    batch = Batch(signals)
    try:
        for measurement in measurements:
            batch.add(measurement)
            if batch.octets >= BATCH_OCTETS:
                batch.send(client, counts)
                batch = Batch(signals)
        if batch.measurements:
            batch.send(client, counts)
    except WatchError as error:
        sent = counts["measurements"]
        raise WatchError(f"{error}; {sent:,} measurements were sent before") from None
    finally:
        client.close()
    return counts


class OtlpStream:
    """Sends what `offer` is given, in a thread of its own, while the block runs.

    Never blocks and never raises: what cannot be sent is dropped, and counted by reason.
    """

    def __init__(
        self,
        client: OtlpClient,
        signals: Signals,
        say: Callable[[str], None],
        *,
        waiting: int = WAITING,
        linger_s: float = LINGER_S,
    ) -> None:
        self.counts: Counter[str] = Counter()
        """Sent: ``measurements``, ``spans``; rejected; ``dropped_queue``, ``dropped_refused``,
        ``dropped_given_up`` in measurements."""
        self._client = client
        self._signals = signals
        self._say = say
        self._said = ""
        self._linger_s = linger_s
        self._waiting: queue.Queue[Measurement | None] = queue.Queue(waiting)
        self._thread = threading.Thread(target=self._run, name="otlp", daemon=True)

    def offer(self, measurement: Measurement) -> None:
        """Have it sent, where there is room."""
        try:
            self._waiting.put_nowait(measurement)
        except queue.Full:
            self.counts["dropped_queue"] += 1

    @property
    def waiting(self) -> int:
        """Measurements that wait."""
        return self._waiting.qsize()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """What waits has a few seconds, unless the other end is away."""
        if self._client.trouble:
            self._client.stop.set()
        with contextlib.suppress(queue.Full):
            self._waiting.put(None, timeout=LAST_S)
        self._thread.join(LAST_S)
        self._client.stop.set()
        self._thread.join(LAST_S)
        self.counts["dropped_stopped"] += self._waiting.qsize()

    def _run(self) -> None:
        ended = False
        while not ended and not self._client.stop.is_set():
            batch, ended = self._batch()
            if batch.measurements:
                self._send(batch)
        self._client.close()

    def _batch(self) -> tuple[Batch, bool]:
        """What comes within a moment, and whether it is the last."""
        batch = Batch(self._signals)
        wait_s: float | None = None
        while batch.octets < BATCH_OCTETS:
            try:
                found = self._waiting.get(timeout=wait_s)
            except queue.Empty:
                break
            if found is None:
                return batch, True
            batch.add(found)
            wait_s = self._linger_s if wait_s is None else wait_s / 2
        return batch, False

    def _send(self, batch: Batch) -> None:
        try:
            batch.send(self._client, self.counts)
        except WatchError as error:
            reason = "refused" if isinstance(error, RefusedError) else "given_up"
            self.counts[f"dropped_{reason}"] += batch.measurements
            self._tell(str(error))
        else:
            self._tell("")

    def _tell(self, trouble: str) -> None:
        """Once when it begins, and when it is over."""
        if trouble != self._said:
            self._say(f"traces and metrics: {trouble or 'are taken again'}")
            self._said = trouble
