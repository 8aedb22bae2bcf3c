"""QUIC handshake, full, resumed and with early data: first Initial sent to the server's flight.

One shot emits samples of one sequence number: resolve (where asked for), quic_handshake,
client_compute, and setup, their sum as a request would wait for it: resolve + quic_handshake, and
with early data resolve alone. Both ends of the handshake are kernel stamps of our own UDP socket.

The words of the options mean what they mean for TLS over TCP (see the tls probe). aioquic does the
protocol; without it the probe is in the table and cannot be opened.
"""

from pathbudget.probes.contract import (
    Cost,
    Options,
    OptionSpec,
    Probe,
    ProbeEnvironment,
    ProbeSpec,
)
from pathbudget.probes.errors import ConfigError, Fault
from pathbudget.probes.http.requests import wrong_path
from pathbudget.probes.quic.checking import quic_faults
from pathbudget.probes.quic.settings import QUIC_OPTIONS
from pathbudget.probes.record import ConnectionMode, Metric, Transport
from pathbudget.probes.tls.settings import HTTPS_PORT

REMEDY = "pip install 'pathbudget[request]'"
HTTP_3 = "h3"
_MODES = (ConnectionMode.COLD, ConnectionMode.RESUMED, ConnectionMode.EARLY_DATA)

OPTIONS = {
    "mode": OptionSpec(
        str,
        "cold",
        "full handshakes, resumed by ticket, or with a request as early data",
        choices=_MODES,
    ),
    "alpn": OptionSpec(str, HTTP_3, "application protocols to offer, as in h3"),
    "early_path": OptionSpec(str, "/", "path of the HEAD request that leaves as early data"),
    **QUIC_OPTIONS,
}


def missing(what: str, error: ImportError) -> ConfigError:
    """The libraries for QUIC are not installed."""
    problem = f"{what} needs {error.name or 'aioquic'}, which is not installed"
    return ConfigError([Fault(what, "", problem, REMEDY)])


def _open(environment: ProbeEnvironment, options: Options) -> Probe:
    faults = _misfits(options)
    if faults:
        raise ConfigError(faults)
    words = _applications(options)
    try:
        from pathbudget.probes.quic.telling import QuicProbe
    except ImportError as error:
        raise missing("quic", error) from error
    return QuicProbe(environment, options, tuple(words))


def _applications(options: Options) -> list[str]:
    given = str(options.get("alpn", HTTP_3) or "")
    return [word.strip() for word in given.split(",") if word.strip()]


def _misfits(options: Options) -> list[Fault]:
    if options.get("mode") != ConnectionMode.EARLY_DATA:
        return []
    faults: list[Fault] = []
    words = _applications(options)
    if words != [HTTP_3]:
        problem = f"early_data with alpn {','.join(words) or 'none'}"
        faults.append(Fault("quic", "alpn", problem, "h3, the one whose requests it knows"))
    problem = wrong_path(str(options.get("early_path") or "/"))
    if problem:
        expected = "one that begins with / and has no spaces"
        faults.append(Fault("quic", "early_path", problem, expected))
    return faults


def _check(options: Options) -> list[Fault]:
    return [*_misfits(options), *quic_faults(options)]


def _cost(options: Options) -> Cost:
    """Our flights are padded to 1200 bytes; a server's with a chain of up to 6 kB; goodbyes."""
    del options
    return Cost(packets=20, bytes=16_000)


def _transport(options: Options) -> Transport:
    del options
    return Transport.QUIC


QUIC = ProbeSpec(
    name="quic",
    summary="QUIC handshake, full, resumed or with early data, and total",
    version=1,
    open=_open,
    cost=_cost,
    options=OPTIONS,
    needs_port=True,
    primary_metric=Metric.SETUP,
    default_port=HTTPS_PORT,
    transport=_transport,
    check=_check,
)
