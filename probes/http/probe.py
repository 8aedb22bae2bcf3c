"""The `http` probe: what one request pays, phase by phase, over HTTP/1.1, 2 or 3.

One shot is one request, on a connection that is new, resumed, carries the request as early data,
or has stood since an earlier shot (`mode`); what the connection really was is on each sample. The
page docs/probes/http.md says between which two events each number lies.
"""

from pathbudget.probes.clock import ClockWatcher
from pathbudget.probes.contract import Cost, Options, Probe, ProbeEnvironment, ProbeSpec, Shot
from pathbudget.probes.http.attempt import HttpAttempt, Shared
from pathbudget.probes.http.links import Links
from pathbudget.probes.http.plan import OPTIONS, check, make_plan
from pathbudget.probes.http.settings import transport_of
from pathbudget.probes.record import Metric
from pathbudget.probes.tls.settings import HTTPS_PORT

_SETUP_PACKETS, _SETUP_BYTES = 24, 10_000
_SEGMENT_BYTES = 1_400
_HEADER_BYTES = 4_000


class HttpProbe:
    """See `contract.Probe`."""

    def __init__(self, environment: ProbeEnvironment, options: Options) -> None:
        from pathbudget.probes.http.dial import http_dialer

        plan = make_plan(options, environment.rng.randbytes)
        links = Links(http_dialer(environment, plan.settings))
        self._shared = Shared(environment, ClockWatcher(environment.clock), plan, links)

    def fire(self, shot: Shot) -> None:
        """See `contract.Probe.fire`."""
        self._shared.begin(HttpAttempt(self._shared, shot))

    async def drain(self) -> None:
        """See `contract.Probe.drain`. Waits for tickets too: the next shot wants them."""
        while self._shared.running:
            await self._shared.idle.wait()
        await self._shared.links.dialer.drain()

    def close(self) -> None:
        """See `contract.Probe.close`."""
        for attempt in tuple(self._shared.running):
            attempt.abandon()
            self._shared.leave(attempt)
        self._shared.links.close()


def _open(environment: ProbeEnvironment, options: Options) -> Probe:
    return HttpProbe(environment, options)


def _cost(options: Options) -> Cost:
    """Set-up, then the request and the largest answer that is taken, each with its headers."""
    up = int(options.get("body_bytes") or 0) + _HEADER_BYTES
    down = int(options.get("answer_bytes") or 0) + _HEADER_BYTES
    requests = 2 if options.get("compare_credentials") else 1
    segments = 2 * (2 + (up + down) // _SEGMENT_BYTES) * requests
    return Cost(
        packets=_SETUP_PACKETS + segments,
        bytes=_SETUP_BYTES + (up + down) * requests + segments * 66,
    )


HTTP = ProbeSpec(
    name="http",
    summary="one HTTP request phase by phase, on a connection in a chosen state",
    version=1,
    open=_open,
    cost=_cost,
    options=OPTIONS,
    needs_port=True,
    primary_metric=Metric.FIRST_BYTE,
    default_port=HTTPS_PORT,
    transport=transport_of,
    check=check,
)
