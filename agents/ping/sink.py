"""Takes the samples of a run as they come: into the state of their host, and out as JSON lines."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from pathbudget.agents.ping import json_lines
from pathbudget.agents.ping.floors import Floors, floor_of
from pathbudget.agents.ping.host_state import HostState
from pathbudget.agents.ping.hosts import check_address
from pathbudget.agents.ping.phases import OWN_LOAD, Phases
from pathbudget.agents.ping.screen import Shown
from pathbudget.probes.contract import ProbeSpec
from pathbudget.probes.record import (
    AddressFamily,
    ClockQuality,
    Flag,
    Measurement,
    NoiseFloor,
    Sample,
)

Key = tuple[str, str, AddressFamily | None]


class PingSink:
    """See `campaign.sink.SampleSink`. `write` gets JSON lines; None where nobody wants them.
    `write_sample` gets those of samples instead, where that is another function.
    """

    def __init__(
        self,
        *,
        table: Mapping[str, ProbeSpec],
        sockets: Mapping[str, str],
        column_ns: int,
        timeout_ns: int,
        write: Callable[[bytes], None] | None = None,
        write_sample: Callable[[bytes], None] | None = None,
        phases: Phases | None = None,
        notice: str = "",
        flows: bool = False,
    ) -> None:
        self.moved: list[str] = []
        """Hosts whose address changed during the run, in words."""
        self.floors: Callable[[], Floors] = dict[str, int]
        """The noise floor of each clock, as far as it is known."""
        self._table = table
        self._sockets = sockets
        self._column_ns = column_ns
        self._timeout_ns = timeout_ns
        self._write = write
        self._write_sample = write_sample or write
        self._phases = phases
        self._notice = notice
        self._flows = flows
        self._open: dict[int, HostState] = {}
        self._rows: dict[Key, HostState] = {}

    def shown(self) -> Sequence[Shown]:
        """The current state of every series, in the order of the plan."""
        return [
            Shown(state, self._sockets.get(probe, probe))
            for (_, probe, _), state in self._rows.items()
        ]

    def states(self) -> Iterable[HostState]:
        """The current ones."""
        return self._rows.values()

    def begin(self, series: int, measurement: Measurement) -> None:
        """See `SampleSink.begin`. Raises ConfigError for an address of many machines."""
        host, probe = measurement.target.name, measurement.probe
        check_address(host, measurement.address)
        state = HostState(
            host=host,
            probe=probe,
            address=measurement.address,
            start_unix_ns=measurement.started_unix_ns,
            column_ns=self._column_ns,
            timeout_ns=self._timeout_ns,
            flows=self._flows,
        )
        key = (host, probe, measurement.family)
        before = self._rows.pop((host, probe, None), None)  # the name did not resolve until now
        before = self._rows.get(key) or before
        if before is not None:
            self.moved.append(
                f"{host} moved from {before.address or 'no address'} to {state.address}"
            )
        self._rows[key] = self._open[series] = state
        self._put(
            json_lines.begin_line(host, self._sockets.get(probe, probe), measurement, self._notice)
        )

    def append(self, series: int, sample: Sample) -> None:
        """See `SampleSink.append`."""
        state = self._open[series]
        phase = None if self._phases is None else self._phases.phase_at(sample.sent_unix_ns)
        if phase in OWN_LOAD:
            sample = msgspec.structs.replace(sample, flags=(*sample.flags, str(Flag.LOADED)))
        outage = state.take(sample, self._table[state.probe].primary_metric, phase)
        if self._write_sample is None:
            return
        self._write_sample(json_lines.sample_line(state, sample))
        if outage is not None:
            self._put(json_lines.outage_line(state, outage))

    def count(self, series: int, word: str) -> None:
        """See `SampleSink.count`."""
        if series in self._open:
            self._open[series].count(word)

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
        if state is None:  # its address was refused, nothing was sent
            return
        outage = state.finish()
        if outage is not None:
            self._put(json_lines.outage_line(state, outage))
        floor_ns = floor_of(state, self.floors())
        self._put(json_lines.summary_line(state, clock, noise, duration_ns, floor_ns))

    def _put(self, line: bytes) -> None:
        if self._write is not None:
            self._write(line)
