"""What both probes let a user choose of their connections, and the dialer that follows from it."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pathbudget.probes.carriers import HttpDialer
from pathbudget.probes.contract import Options, OptionSpec, ProbeEnvironment
from pathbudget.probes.errors import ConfigError, Fault
from pathbudget.probes.record import ConnectionMode, Transport
from pathbudget.probes.tls.settings import TLS_OPTIONS

if TYPE_CHECKING:
    from pathbudget.probes.tls.settings import TlsSettings

HTTP_1, HTTP_2, HTTP_3 = "1.1", "2", "3"
HTTPS, HTTP = "https", "http"
ALPN = {HTTP_1: ("http/1.1",), HTTP_2: ("h2",), HTTP_3: ("h3",)}
MODES = ("cold", "resumed", "warm")

CONNECTION_OPTIONS: Mapping[str, OptionSpec] = {
    "mode": OptionSpec(
        str, "cold", "a connection for each shot, by ticket, or kept", choices=MODES
    ),
    **TLS_OPTIONS,
}


def mode_of(options: Options) -> ConnectionMode:
    """The mode that is wished for."""
    return ConnectionMode(str(options.get("mode") or "cold"))


def keeps(options: Options) -> bool:
    """Whether connections are used again."""
    return mode_of(options) is ConnectionMode.WARM


def transport_of(options: Options) -> Transport:
    """What carries the requests."""
    if options.get("version") == HTTP_3:
        return Transport.QUIC
    return Transport.TCP if options.get("scheme") == HTTP else Transport.TLS


def bearer(file: str) -> tuple[tuple[str, str], ...]:
    """The header that shows what a file holds; nothing without a file. What it holds is never told.

    Raises:
        ConfigError: the file cannot be read, or holds no word.
    """
    if not file:
        return ()
    expected = "a file with one word in it"
    try:
        words = Path(file).read_text("ascii").split()
    except OSError as error:
        problem = (error.strerror or str(error)).lower()
        raise ConfigError([Fault(file, "", problem, expected)]) from error
    except UnicodeDecodeError:
        raise ConfigError([Fault(file, "", "not plain ASCII", expected)]) from None
    if len(words) != 1 or not words[0].isprintable():
        raise ConfigError([Fault(file, "", f"{len(words)} words", expected)])
    return (("authorization", f"Bearer {words[0]}"),)


def settings_of(options: Options, port: int) -> "TlsSettings":
    """How TLS connections are opened."""
    from pathbudget.probes.tls.settings import tls_settings

    version = str(options.get("version") or HTTP_1)
    return tls_settings(
        options,
        mode=mode_of(options),
        alpn=ALPN[version],
        tls=options.get("scheme") != HTTP,
        default_port=port,
    )


def websocket_dialer(environment: ProbeEnvironment, options: Options, port: int) -> HttpDialer:
    """Streams over WebSockets."""
    from pathbudget.probes.clock import ClockWatcher
    from pathbudget.probes.stream.websocket_carrier import WebSocketDialer
    from pathbudget.probes.tls.stream import TlsStreamDialer

    streams = TlsStreamDialer(environment, settings_of(options, port))
    return WebSocketDialer(streams, ClockWatcher(environment.clock))


def dialer_for(environment: ProbeEnvironment, options: Options, port: int) -> HttpDialer:
    """Streams in the bodies of HTTP answers."""
    from pathbudget.probes.http.dial import http_dialer

    return http_dialer(environment, options, port)
