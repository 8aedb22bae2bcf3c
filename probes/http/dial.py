"""HTTP connections of any version, opened: the one door for every probe that makes requests.

dialer = http_dialer(environment, http_settings(options, mode=ConnectionMode.COLD))
connection = dialer.dial(shot, listener)      # listener.opened(...), then connection.request
"""

from collections.abc import Callable
from dataclasses import replace

from pathbudget.probes.carriers import (
    AnswerListener,
    HttpDialer,
    OpeningListener,
    Request,
    StreamDialer,
)
from pathbudget.probes.clock import ClockWatcher
from pathbudget.probes.contract import ProbeEnvironment, Shot
from pathbudget.probes.errors import ConfigError, Fault
from pathbudget.probes.http.connection import StreamHttpConnection
from pathbudget.probes.http.exchanges import Exchanges
from pathbudget.probes.http.settings import (
    ALPN,
    HTTP_1,
    HTTP_2,
    HTTP_3,
    HTTP_OPTIONS,
    HttpSettings,
    Limits,
    http_settings,
    transport_of,
)
from pathbudget.probes.quic.settings import QuicSettings
from pathbudget.probes.tls.settings import TlsSettings
from pathbudget.probes.tls.stream import TlsStreamDialer

__all__ = [
    "HTTP_OPTIONS",
    "HttpSettings",
    "Limits",
    "StreamHttpDialer",
    "http_dialer",
    "http_settings",
    "transport_of",
]

REMEDY = "pip install 'pathbudget[request]'"
_LIBRARY = {HTTP_1: "h11", HTTP_2: "h2", HTTP_3: "aioquic"}


class StreamHttpDialer:
    """See `carriers.HttpDialer`: HTTP/1.1 or 2 on streams. `segments`: every segment of them has a
    send stamp of its own.
    """

    def __init__(
        self,
        streams: StreamDialer,
        watcher: ClockWatcher,
        exchanges: Callable[[], Exchanges],
        application: str,
        *,
        segments: bool = False,
    ) -> None:
        self._streams = streams
        self._watcher = watcher
        self._exchanges = exchanges
        self._application = application
        self._segments = segments

    def dial(
        self,
        shot: Shot,
        listener: OpeningListener,
        early: tuple[Request, AnswerListener] | None = None,
    ) -> StreamHttpConnection:
        """See `carriers.HttpDialer.dial`."""
        connection = StreamHttpConnection(
            self._exchanges(),
            self._watcher,
            listener,
            self._application,
            segments=self._segments,
        )
        data = b"" if early is None else connection.prepare(*early)
        connection.attach(self._streams.dial(shot, connection, early=data))
        return connection

    async def drain(self) -> None:
        """See `carriers.HttpDialer.drain`."""
        await self._streams.drain()

    def close(self) -> None:
        """See `carriers.HttpDialer.close`."""
        self._streams.close()


def http_dialer(environment: ProbeEnvironment, settings: HttpSettings) -> HttpDialer:
    """What opens connections with these settings.

    Raises:
        ConfigError: a library is not installed, or a file or word of the settings cannot be used.
    """
    try:
        if settings.version == HTTP_3:
            from pathbudget.probes.http.http3 import Http3Dialer

            return Http3Dialer(environment, _quic(settings.tls), settings.limits)
        exchanges = _exchanges(settings)
    except ImportError as error:
        library = _LIBRARY[settings.version]
        problem = f"version {settings.version} needs {library}, which is not installed"
        raise ConfigError([Fault("http", "version", problem, REMEDY)]) from error
    streams = TlsStreamDialer(environment, settings.tls)
    watcher = ClockWatcher(environment.clock)
    return StreamHttpDialer(
        streams,
        watcher,
        exchanges,
        ALPN[settings.version],
        segments=settings.tls.tcp.segments,
    )


def _exchanges(settings: HttpSettings) -> Callable[[], Exchanges]:
    limits = settings.limits
    if settings.version == HTTP_2:
        from pathbudget.probes.http.http2 import Http2Exchanges

        scheme = settings.scheme
        return lambda: Http2Exchanges(limits, scheme)
    from pathbudget.probes.http.http1 import Http1Exchanges

    return lambda: Http1Exchanges(limits)


def _quic(tls: TlsSettings) -> QuicSettings:
    """The same wishes, of a QUIC connection."""
    return QuicSettings(
        mode=tls.mode,
        verify=tls.verify,
        ca_file=tls.ca_file,
        alpn=(ALPN[HTTP_3],),
        client_certificate=tls.client_certificate,
        client_key=tls.client_key,
        ticket_reuse=tls.ticket_reuse,
        ticket_age_ns=tls.ticket_age_ns,
        default_port=tls.default_port,
        packet=replace(tls.packet, fragment=False),
    )
