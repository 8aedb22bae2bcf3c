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
from pathbudget.probes.option_files import no_regular_file, noting
from pathbudget.probes.record import ConnectionMode, Flag

__all__ = [
    "CONNECTION_OPTIONS",
    "HTTP",
    "HTTPS",
    "HTTP_1",
    "HTTP_2",
    "HTTP_3",
    "bearer",
    "bearer_faults",
    "connection_faults",
    "dialer_for",
    "keeps",
    "marks_of_options",
    "mode_of",
    "transport_of",
    "websocket_dialer",
]

LARGEST_SECRET_BYTES = 65_536
ONE_WORD = "a file with one word in it"
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


def marks_of_options(options: Options) -> tuple[str, ...]:
    """What every sample says of certificates that are not checked."""
    encrypted = options.get("scheme", HTTPS) != HTTP
    return (Flag.UNVERIFIED,) if encrypted and not options.get("verify", True) else ()


def bearer(options: Options, option: str, probe: str) -> tuple[tuple[str, str], ...]:
    """The header that shows what the file of an option holds; nothing without a file. What it holds
    is never told.

    Raises:
        ConfigError: the file cannot be read, or holds no word.
    """
    file = str(options.get(option) or "")
    if not file:
        return ()
    problem, words = "", list[str]()
    try:
        with Path(file).open("rb") as source:
            words = source.read(LARGEST_SECRET_BYTES).decode("ascii").split()
    except OSError as error:
        problem = (error.strerror or str(error)).lower()
    except UnicodeDecodeError:
        problem = "not plain ASCII"
    if not problem and len(words) != 1:
        problem = f"{len(words)} words"
    elif not problem and not words[0].isprintable():
        problem = "not plain text"
    if problem:
        raise ConfigError([Fault(probe, option, f"{file}: {problem}", ONE_WORD)])
    return (("authorization", f"Bearer {words[0]}"),)


def bearer_faults(options: Options, option: str, probe: str) -> list[Fault]:
    """What keeps `bearer` from reading that file, now and once more when the probe is opened."""
    fault = no_regular_file(options, option, ONE_WORD, probe)
    faults = [] if fault is None else [fault]
    if not faults:
        noting(faults, option, lambda: bearer(options, option, probe), probe)
    return faults


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
