"""The `token_stream` probe: how evenly a paced stream of our reflector arrives.

One shot is one stream: `chunks` of `bytes` each, one every `interval_ms`. The reflector says when
each chunk left it (kernel stamps, where it has them), we stamp when it came; so what the path did
to each gap is told apart from what the sender did.
"""

from pathbudget.probes.clock import ClockWatcher
from pathbudget.probes.contract import (
    Cost,
    Options,
    OptionSpec,
    Probe,
    ProbeEnvironment,
    ProbeSpec,
    Shot,
)
from pathbudget.probes.errors import ConfigError, Fault
from pathbudget.probes.record import Metric
from pathbudget.probes.reflector_http import HTTPS_PORT
from pathbudget.probes.stream.connections import Connections
from pathbudget.probes.stream.delivery import (
    CHUNKED,
    SSE,
    WEBSOCKET,
    DeliveryAttempt,
    StreamPlan,
)
from pathbudget.probes.stream.dialing import (
    CONNECTION_OPTIONS,
    HTTP_1,
    bearer,
    bearer_faults,
    connection_faults,
    dialer_for,
    keeps,
    marks_of_options,
    transport_of,
    websocket_dialer,
)
from pathbudget.probes.stream.shots import Shared

NAME = "token_stream"
_SMALLEST_CHUNK = 128
"""What a chunk is long at least: its own stamps."""
_RECORD_AND_HEADERS = 22 + 66

OPTIONS = {
    "chunks": OptionSpec(int, 100, "chunks of one stream", minimum=2, maximum=100_000),
    "interval_ms": OptionSpec(
        float, 33.333, "time between two of them (30 a second)", minimum=0.1, maximum=10_000
    ),
    "bytes": OptionSpec(
        int, 200, "length of each, at least that of its stamps", minimum=0, maximum=65_536
    ),
    "form": OptionSpec(str, SSE, "how the stream is framed", choices=(SSE, CHUNKED, WEBSOCKET)),
    "buffer_ms": OptionSpec(
        float, 100.0, "a gap longer than interval and this is a stall", minimum=0, maximum=60_000
    ),
    "underrun_rate": OptionSpec(
        float, 0.01, "chunks that may come too late for play-out", minimum=0.000_001, maximum=0.5
    ),
    "token_file": OptionSpec(
        str, "", "file of the bearer token that the reflector asks for", file=True
    ),
    **CONNECTION_OPTIONS,
}


class TokenStreamProbe:
    """See `contract.Probe`."""

    def __init__(self, environment: ProbeEnvironment, options: Options) -> None:
        self._plan = _plan(options)
        form = self._plan.form
        dialer = (websocket_dialer if form == WEBSOCKET else dialer_for)(
            environment, options, HTTPS_PORT, NAME
        )
        self._shared = Shared(
            environment,
            ClockWatcher(environment.clock),
            Connections(dialer, keep=keeps(options)),
            HTTPS_PORT,
            marks=marks_of_options(options),
            early=options.get("mode") == "early_data",
        )

    def fire(self, shot: Shot) -> None:
        """See `contract.Probe.fire`."""
        self._shared.begin(DeliveryAttempt(self._shared, shot, self._plan))

    async def drain(self) -> None:
        """See `contract.Probe.drain`."""
        await self._shared.drain()

    def close(self) -> None:
        """See `contract.Probe.close`."""
        self._shared.close()


def _plan(options: Options) -> StreamPlan:
    faults = _own_faults(options)
    if faults:
        raise ConfigError(faults)
    return StreamPlan(
        chunks=int(options.get("chunks") or 0),
        interval_ns=round(float(options.get("interval_ms") or 0) * 1_000) * 1_000,
        octets=int(options.get("bytes") or 0),
        form=str(options.get("form")),
        buffer_ns=round(float(options.get("buffer_ms") or 0) * 1e6),
        underrun_rate=float(options.get("underrun_rate") or 0),
        headers=bearer(options, "token_file", NAME),
    )


def _own_faults(options: Options) -> list[Fault]:
    """What cannot be had together, and a token that is none."""
    faults: list[Fault] = []
    version, mode = options.get("version"), str(options.get("mode"))
    if options.get("form") == WEBSOCKET and version != HTTP_1:
        faults.append(Fault(NAME, "version", f"{version} with form websocket", HTTP_1))
    if options.get("form") == WEBSOCKET and mode in ("warm", "early_data"):
        problem = f"{mode} with form websocket"
        faults.append(Fault(NAME, "mode", problem, "cold or resumed"))
    return [*faults, *bearer_faults(options, "token_file", NAME)]


def _check(options: Options) -> list[Fault]:
    return [*_own_faults(options), *connection_faults(options, NAME)]


def _open(environment: ProbeEnvironment, options: Options) -> Probe:
    return TokenStreamProbe(environment, options)


def _cost(options: Options) -> Cost:
    """Set-up (24 packets, 10 kB), then for each chunk a packet there and its acknowledgement."""
    chunks = int(options.get("chunks") or 0)
    octets = max(int(options.get("bytes") or 0), _SMALLEST_CHUNK)
    segments = 1 + octets // 1_400
    each = octets + segments * _RECORD_AND_HEADERS + 66
    return Cost(packets=24 + chunks * (segments + 1), bytes=10_000 + chunks * each)


TOKEN_STREAM = ProbeSpec(
    name=NAME,
    summary="how evenly a paced stream of the reflector arrives, chunk by chunk",
    version=1,
    open=_open,
    cost=_cost,
    options=OPTIONS,
    needs_port=True,
    primary_metric=Metric.TTFT,
    default_port=HTTPS_PORT,
    own_port=True,
    transport=transport_of,
    check=_check,
)
