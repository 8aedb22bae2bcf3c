"""What both probes let a user choose of their connections, and the dialer that follows from it."""

from collections.abc import Mapping
from pathlib import Path

from pathbudget.probes.carriers import HttpDialer
from pathbudget.probes.contract import Options, OptionSpec, ProbeEnvironment
from pathbudget.probes.errors import ConfigError, Fault
from pathbudget.probes.http.settings import (
    HTTP,
    HTTP_1,
    HTTP_2,
    HTTP_3,
    HTTP_OPTIONS,
    HTTPS,
    HttpSettings,
    carrying_faults,
    http_settings,
    transport_of,
)
from pathbudget.probes.option_files import no_regular_file
from pathbudget.probes.record import ConnectionMode

__all__ = [
    "CONNECTION_OPTIONS",
    "HTTP",
    "HTTPS",
    "HTTP_1",
    "HTTP_2",
    "HTTP_3",
    "bearer",
    "connection_faults",
    "dialer_for",
    "keeps",
    "mode_of",
    "transport_of",
    "websocket_dialer",
]

MODES = ("cold", "resumed", "early_data", "warm")
REMEDY = "pip install 'pathbudget[request]'"

CONNECTION_OPTIONS: Mapping[str, OptionSpec] = {
    "mode": OptionSpec(
        str, "cold", "connection of a shot: new, by ticket, kept from before", choices=MODES
    ),
    **HTTP_OPTIONS,
}


def mode_of(options: Options) -> ConnectionMode:
    """The mode that is wished for."""
    return ConnectionMode(str(options.get("mode") or "cold"))


def keeps(options: Options) -> bool:
    """Whether connections are used again."""
    return mode_of(options) is ConnectionMode.WARM


def bearer(options: Options, option: str) -> tuple[tuple[str, str], ...]:
    """The header that shows what the file of an option holds; nothing without a file. What it holds
    is never told.

    Raises:
        ConfigError: the file cannot be read, or holds no word.
    """
    file = str(options.get(option) or "")
    expected = "a file with one word in it"
    fault = no_regular_file(options, option, expected)
    if fault is not None:
        raise ConfigError([fault])
    if not file:
        return ()
    try:
        words = Path(file).read_text("ascii").split()
    except OSError as error:
        problem = f"{file}: {(error.strerror or str(error)).lower()}"
        raise ConfigError([Fault("", option, problem, expected)]) from error
    except UnicodeDecodeError:
        raise ConfigError([Fault("", option, f"{file}: not plain ASCII", expected)]) from None
    if len(words) != 1 or not words[0].isprintable():
        raise ConfigError([Fault("", option, f"{file}: {len(words)} words", expected)])
    return (("authorization", f"Bearer {words[0]}"),)


def connection_faults(options: Options, probe: str) -> list[Fault]:
    """Every fault in `CONNECTION_OPTIONS` among these options."""
    return carrying_faults(options, mode_of(options), probe)


def _settings(options: Options, port: int | None, probe: str) -> HttpSettings:
    return http_settings(options, mode=mode_of(options), default_port=port, probe=probe)


def websocket_dialer(
    environment: ProbeEnvironment, options: Options, port: int | None, probe: str
) -> HttpDialer:
    """Streams over WebSockets. Raises ConfigError."""
    try:
        from pathbudget.probes.stream.websocket_carrier import WebSocketDialer
    except ImportError as error:
        problem = "form websocket needs wsproto, which is not installed"
        raise ConfigError([Fault(probe, "form", problem, REMEDY)]) from error
    from pathbudget.probes.clock import ClockWatcher
    from pathbudget.probes.tls.stream import TlsStreamDialer

    streams = TlsStreamDialer(environment, _settings(options, port, probe).tls)
    return WebSocketDialer(streams, ClockWatcher(environment.clock))


def dialer_for(
    environment: ProbeEnvironment, options: Options, port: int | None, probe: str
) -> HttpDialer:
    """Streams in the bodies of HTTP answers. Raises ConfigError."""
    from pathbudget.probes.http.dial import http_dialer

    return http_dialer(environment, _settings(options, port, probe))
