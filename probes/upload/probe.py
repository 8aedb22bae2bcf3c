"""Upload of a prompt: first byte of the body sent to the answer that its last one was read.

A body of so many bytes goes to the sink of a reflector (``POST /upload``) over HTTP/1.1, 2 or 3.
What is measured is the network's part of a long prompt: slow start needs a round trip per flight,
and a connection that lay idle starts over. The modes are states of the connection as the upload
begins: new ones (``cold``, ``resumed``, ``early_data``), one that has just carried an upload of the
same size (``warm``), and one that lay idle for longer than its retransmission timer (``idle``).
Connections of the last two come from earlier shots: a shot that finds none opens one, and its
samples say ``cold``.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace

from pathbudget.probes.carriers import HttpDialer
from pathbudget.probes.clock import ClockWatcher
from pathbudget.probes.contract import Options, Probe, ProbeEnvironment, ProbeSpec, Shot
from pathbudget.probes.http.dial import http_dialer, http_settings, transport_of
from pathbudget.probes.record import ConnectionMode, Metric
from pathbudget.probes.reflector_http import HTTPS_PORT
from pathbudget.probes.upload.attempt import Shared, UploadAttempt
from pathbudget.probes.upload.body import make_body
from pathbudget.probes.upload.kept import KeptConnections
from pathbudget.probes.upload.observer import ObservedNetwork
from pathbudget.probes.upload.settings import OPTIONS, check, upload_cost, upload_settings

Dialing = Callable[[ProbeEnvironment, Options, ConnectionMode], HttpDialer]


class UploadProbe:
    """See `contract.Probe`."""

    def __init__(self, environment: ProbeEnvironment, options: Options, dialing: Dialing) -> None:
        settings = upload_settings(options)
        network = ObservedNetwork(environment.network, settings.congestion)
        watched = replace(environment, network=network.as_network())
        self._dialer = dialing(watched, options, settings.mode)
        self._kept = KeptConnections()
        self._running: set[UploadAttempt] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._shared = Shared(
            environment=environment,
            watcher=ClockWatcher(environment.clock),
            settings=settings,
            dialer=self._dialer,
            network=network,
            kept=self._kept,
            body=make_body(settings.bytes, environment.rng),
            port=HTTPS_PORT,
            ended=self._ended,
        )

    def fire(self, shot: Shot) -> None:
        """See `contract.Probe.fire`."""
        attempt = UploadAttempt(self._shared, shot)
        self._running.add(attempt)
        self._idle.clear()
        attempt.begin()

    async def drain(self) -> None:
        """See `contract.Probe.drain`. Waits for tickets too: the next shot wants them."""
        await self._idle.wait()
        await self._dialer.drain()

    def close(self) -> None:
        """See `contract.Probe.close`."""
        for attempt in tuple(self._running):
            attempt.abandon()
            self._ended(attempt)
        self._kept.close()
        self._dialer.close()

    def _ended(self, attempt: UploadAttempt) -> None:
        self._running.discard(attempt)
        if not self._running:
            self._idle.set()


def dial_by_options(
    environment: ProbeEnvironment, options: Options, mode: ConnectionMode
) -> HttpDialer:
    """Raises ConfigError where the options do not go together or cannot be used."""
    settings = http_settings(options, mode=mode, default_port=HTTPS_PORT, probe="upload")
    return http_dialer(environment, settings)


def _open(environment: ProbeEnvironment, options: Options) -> Probe:
    return UploadProbe(environment, options, dial_by_options)


UPLOAD = ProbeSpec(
    name="upload",
    summary="prompt upload to a reflector: cold, resumed, warm, idle; flights and TCP's own words",
    version=1,
    open=_open,
    cost=upload_cost,
    options=OPTIONS,
    primary_metric=Metric.UPLOAD,
    needs_port=True,
    default_port=HTTPS_PORT,
    own_port=True,
    transport=transport_of,
    check=check,
)
