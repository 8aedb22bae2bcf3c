"""The `quic` probe at work: connections into samples. Needs aioquic."""

from aioquic.h3.connection import H3Connection

from pathbudget.probes.carriers import Moment
from pathbudget.probes.contract import Options, ProbeEnvironment, Shot
from pathbudget.probes.opening_samples import OpeningTeller
from pathbudget.probes.quic.dialer import QuicDialer, QuicStreams, quic_settings
from pathbudget.probes.record import (
    ConnectionMode,
    Metric,
)


class QuicProbe:
    """See `contract.Probe`."""

    def __init__(
        self, environment: ProbeEnvironment, options: Options, alpn: tuple[str, ...]
    ) -> None:
        mode = ConnectionMode(str(options.get("mode") or "cold"))
        self._environment = environment
        self._settings = quic_settings(options, mode=mode, alpn=alpn)
        self._early_path = str(options.get("early_path") or "/")
        self._dialer = QuicDialer(environment, self._settings)

    def fire(self, shot: Shot) -> None:
        """See `contract.Probe.fire`."""
        told = _Teller(
            self._environment,
            shot,
            handshake=Metric.QUIC_HANDSHAKE,
            named_by=Metric.QUIC_HANDSHAKE,
            verified=self._settings.verify,
        )
        wanted = self._settings.mode is ConnectionMode.EARLY_DATA

        def ask(streams: QuicStreams) -> None:
            ask_early(streams, shot, self._early_path)

        streams = self._dialer.prepare(shot, told, early=ask if wanted else None)
        told.connection = streams
        streams.begin()

    async def drain(self) -> None:
        """See `contract.Probe.drain`. Waits for tickets too: the next shot wants them."""
        await self._dialer.drain()

    def close(self) -> None:
        """See `contract.Probe.close`."""
        self._dialer.close()


def ask_early(streams: QuicStreams, shot: Shot, path: str) -> None:
    """Write the request that leaves as early data (RFC 9114, 4): one that changes nothing."""
    host = shot.target.server_name or shot.target.host
    authority = f"[{host}]" if ":" in host else host
    headers = {":method": "HEAD", ":scheme": "https", ":authority": authority, ":path": path}
    http = H3Connection(streams.quic)
    stream = streams.quic.get_next_available_stream_id()
    encoded = [(name.encode(), value.encode("utf-8", "replace")) for name, value in headers.items()]
    http.send_headers(stream, encoded, end_stream=True)


class _Teller(OpeningTeller):
    """A `QuicListener` to whom only the opening matters."""

    def stream_left(self, stream: int, first: Moment, last: Moment) -> None:
        """See `QuicListener.stream_left`."""

    def stream_acknowledged(self, stream: int, moment: Moment) -> None:
        """See `QuicListener.stream_acknowledged`."""

    def stream_data(self, stream: int, data: bytes, fin: bool, moment: Moment) -> None:
        """See `QuicListener.stream_data`: the answer to the early request is not waited for."""

    def stream_refused(self, stream: int, code: int, moment: Moment) -> None:
        """See `QuicListener.stream_refused`."""
