"""How HTTP requests are carried: what a user may choose, and the same checked."""

from dataclasses import dataclass, field

from pathbudget.probes.channels import PLAIN, PLAIN_TCP, PacketOptions, TcpOptions
from pathbudget.probes.contract import Options, OptionSpec
from pathbudget.probes.errors import ConfigError, Fault
from pathbudget.probes.quic.checking import quic_faults
from pathbudget.probes.record import ConnectionMode, Transport
from pathbudget.probes.tls.checking import tls_faults
from pathbudget.probes.tls.settings import HTTPS_PORT, TLS_OPTIONS, TlsSettings, tls_settings

HTTP_1, HTTP_2, HTTP_3 = "1.1", "2", "3"
HTTPS, HTTP = "https", "http"
HTTP_PORT = 80
ALPN = {HTTP_1: "http/1.1", HTTP_2: "h2", HTTP_3: "h3"}
"""What each version is called in TLS (RFC 7301)."""

HTTP_OPTIONS = {
    "version": OptionSpec(str, HTTP_1, "version of HTTP", choices=(HTTP_1, HTTP_2, HTTP_3)),
    "scheme": OptionSpec(str, HTTPS, "http: without TLS", choices=(HTTPS, HTTP)),
    **TLS_OPTIONS,
}
"""What every probe over HTTP offers."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of an answer is taken; one that goes beyond is a failure."""

    header_bytes: int = 65_536
    headers: int = 256
    body_bytes: int = 1 << 28
    informational: int = 32
    """Answers of class 1xx before the real one."""


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """How requests are carried. ALPN follows from `version`, and TLS from `scheme`."""

    version: str = HTTP_1
    scheme: str = HTTPS
    tls: TlsSettings = field(default_factory=TlsSettings)
    limits: Limits = field(default_factory=Limits)


def http_settings(
    options: Options,
    *,
    mode: ConnectionMode = ConnectionMode.COLD,
    default_port: int | None = None,
    packet: PacketOptions = PLAIN,
    tcp: TcpOptions = PLAIN_TCP,
    probe: str = "http",
) -> HttpSettings:
    """The settings that `HTTP_OPTIONS` among these options stand for.

    Raises:
        ConfigError: they do not go together; `probe` is whom the faults name.
    """
    faults = misfits(options, mode, probe)
    if faults:
        raise ConfigError(faults)
    version, scheme = _version(options), _scheme(options)
    if default_port is None:
        default_port = HTTPS_PORT if scheme == HTTPS else HTTP_PORT
    tls = tls_settings(
        options,
        mode=mode,
        alpn=(ALPN[version],),
        tls=scheme == HTTPS,
        default_port=default_port,
        packet=packet,
        tcp=tcp,
    )
    return HttpSettings(version, scheme, tls)


def misfits(options: Options, mode: ConnectionMode, probe: str = "http") -> list[Fault]:
    """What among `HTTP_OPTIONS` cannot be had together."""
    faults: list[Fault] = []
    version, scheme = _version(options), _scheme(options)
    if version == HTTP_3 and scheme == HTTP:
        faults.append(Fault(probe, "scheme", "http with version 3", "https"))
    for name in ("groups", "library"):
        chosen = options.get(name) or ""
        if version == HTTP_3 and chosen not in ("", TLS_OPTIONS[name].default):
            faults.append(Fault(probe, name, f"{name} with version 3", "version 1.1 or 2"))
    if scheme == HTTP and mode in (ConnectionMode.RESUMED, ConnectionMode.EARLY_DATA):
        expected = "one of cold, warm, idle where there is no TLS"
        faults.append(Fault(probe, "mode", f"{mode} with scheme http", expected))
    return faults


def carrying_faults(options: Options, mode: ConnectionMode, probe: str) -> list[Fault]:
    """Every fault in `HTTP_OPTIONS` among these options, in the files that they name too."""
    if _version(options) == HTTP_3:
        return [*misfits(options, mode, probe), *quic_faults(options)]
    mode_of_tls = ConnectionMode.COLD if _scheme(options) == HTTP else mode
    return [*misfits(options, mode, probe), *tls_faults(options, mode_of_tls)]


def _version(options: Options) -> str:
    return str(options.get("version") or HTTP_1)


def _scheme(options: Options) -> str:
    return str(options.get("scheme") or HTTPS)


def transport_of(options: Options) -> Transport:
    """What carries the requests."""
    if options.get("version") == HTTP_3:
        return Transport.QUIC
    return Transport.TCP if options.get("scheme") == HTTP else Transport.TLS
