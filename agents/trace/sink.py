"""Takes the samples of traces as they come: into the path of their address, and out as JSON."""

from collections.abc import Callable, Iterable

from pathbudget.agents.ping.hosts import check_address
from pathbudget.agents.ping.words import duration
from pathbudget.agents.trace import json_lines
from pathbudget.agents.trace.changes import Change, changed_hops
from pathbudget.agents.trace.hop_rows import judged
from pathbudget.agents.trace.known import Knowing
from pathbudget.agents.trace.path_state import PathState, Round
from pathbudget.analysis.hop_loss import JudgedHop
from pathbudget.analysis.report.words import counted
from pathbudget.probes.record import (
    AddressFamily,
    ClockQuality,
    Measurement,
    NoiseFloor,
    Sample,
)

Key = tuple[str, AddressFamily | None]


class TraceSink:
    """See `campaign.sink.SampleSink`. `write` gets JSON lines; None where nobody wants them."""

    def __init__(
        self,
        *,
        column_ns: int,
        timeout_ns: int,
        write: Callable[[bytes], None] | None = None,
        knowing: Knowing | None = None,
    ) -> None:
        self.moved: list[str] = []
        """Hosts whose address changed during the run, in words."""
        self.ended: Callable[[PathState, Round], None] = _forget
        """Told of every round that ended."""
        self.verdicts: dict[int, dict[int, JudgedHop]] = {}
        """By the identity of the path: what missing answers mean, as of the last round."""
        self._column_ns = column_ns
        self._timeout_ns = timeout_ns
        self._write = write
        self._knowing = knowing or Knowing()
        self._open: dict[int, PathState] = {}
        self._rows: dict[Key, PathState] = {}

    def states(self) -> Iterable[PathState]:
        """The current path of every host."""
        return self._rows.values()

    def verdicts_of(self, state: PathState) -> dict[int, JudgedHop]:
        """What missing answers mean at each hop limit, as of the last round."""
        return self.verdicts.get(id(state), {})

    def begin(self, series: int, measurement: Measurement) -> None:
        """See `SampleSink.begin`. Raises ConfigError for an address of many machines."""
        host = measurement.target.name
        check_address(host, measurement.address)
        state = PathState(
            host=host,
            address=measurement.address,
            start_unix_ns=measurement.started_unix_ns,
            column_ns=self._column_ns,
            timeout_ns=self._timeout_ns,
        )
        key = (host, measurement.family)
        unresolved = self._rows.pop((host, None), None)  # the name did not resolve until now
        before = self._rows.get(key) or unresolved
        if before is not None:
            was = before.address or "no address"
            self.moved.append(f"{host} moved from {was} to {state.address}")
        self._rows[key] = self._open[series] = state
        self._put(json_lines.begin_line(host, measurement))

    def append(self, series: int, sample: Sample) -> None:
        """See `SampleSink.append`."""
        state = self._open[series]
        ended = state.take(sample)
        self._put(json_lines.sample_line(state, sample))
        if ended is None:
            return
        self.verdicts[id(state)] = judged(state)
        known = self._knowing.about([state])
        self._put(json_lines.round_line(state, ended, self.verdicts_of(state), known))
        self.ended(state, ended)

    def count(self, series: int, word: str) -> None:
        """See `SampleSink.count`."""
        if series in self._open:
            self._open[series].counted[word] += 1

    def end(
        self,
        series: int,
        *,
        clock: ClockQuality | None,
        noise: NoiseFloor | None,
        duration_ns: int,
    ) -> None:
        """See `SampleSink.end`."""
        state = self._open.pop(series, None)
        if state is not None:  # otherwise its address was refused, and nothing was sent
            known = self._knowing.about([state])
            verdicts = self.verdicts_of(state)
            self._put(json_lines.summary_line(state, verdicts, known, clock, noise, duration_ns))

    def _put(self, line: bytes) -> None:
        if self._write is not None:
            self._write(line)


def news_of(state: PathState, ended: Round) -> str:
    """One round in a line: whether it arrived, how long that takes, and what changed."""
    address = f" ({state.address})" if state.address not in ("", state.host) else ""
    number = f"{state.host}{address}: round {state.rounds}"
    rtt = f"{duration(state.target.quantile(0.5), micro=False)} ms p50"
    came = f"reached, {rtt}" if ended.reached else f"not reached ({ended.stopped or 'no answer'})"
    flows, length = counted(len(ended.flows), "flow"), counted(ended.longest, "hop")
    text = f"{number}: {came}, {flows}, {length}"
    if state.first is None or state.first is ended:
        return text
    for kind in (Change.MOVED, Change.NEW, Change.FLUTTER):
        hops = changed_hops(state.first, ended, kind)
        if hops:
            text += f"; {kind} at {', '.join(map(str, hops))}"
    return text


def _forget(state: PathState, ended: Round) -> None:
    del state, ended
