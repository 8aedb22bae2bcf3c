"""How TLS connections are opened: what a user may choose, and the same checked."""

from dataclasses import dataclass

from pathbudget.probes.channels import PLAIN, PLAIN_TCP, PacketOptions, TcpOptions
from pathbudget.probes.contract import Options, OptionSpec
from pathbudget.probes.record import ConnectionMode

HTTPS_PORT = 443
WEEK_SECONDS = 604_800

TLS_OPTIONS = {
    "verify": OptionSpec(bool, True, "check the server's certificate"),
    "ca_file": OptionSpec(
        str, "", "PEM file of authorities to trust instead of the system's", file=True
    ),
    "client_certificate": OptionSpec(
        str, "", "PEM file of our own certificate and its chain", file=True
    ),
    "client_key": OptionSpec(
        str, "", "PEM file of its key, where it is not in the same file", file=True
    ),
    "groups": OptionSpec(
        str, "", "key-share groups to offer, best first, as in X25519MLKEM768:X25519"
    ),
    "library": OptionSpec(
        str,
        "auto",
        "what does the cryptography: pyOpenSSL where installed, or Python's ssl",
        choices=("auto", "openssl", "ssl"),
    ),
    "ticket_reuse": OptionSpec(bool, False, "offer one ticket again and again, against the advice"),
    "ticket_age": OptionSpec(
        float,
        0.0,
        "resume only with tickets of this age in seconds",
        minimum=0,
        maximum=WEEK_SECONDS,
    ),
}
"""What every probe over TLS offers."""


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """How connections are opened. `mode` is what is wished for; `tls` false is TCP alone.

    Modes without a set-up of their own (warm, idle) are opened cold.
    """

    mode: ConnectionMode = ConnectionMode.COLD
    verify: bool = True
    ca_file: str = ""
    alpn: tuple[str, ...] = ()
    client_certificate: str = ""
    client_key: str = ""
    groups: str = ""
    library: str = "auto"
    ticket_reuse: bool = False
    ticket_age_ns: int = 0
    tls: bool = True
    default_port: int = HTTPS_PORT
    """Where a target names none."""
    packet: PacketOptions = PLAIN
    tcp: TcpOptions = PLAIN_TCP

    @property
    def wants_tickets(self) -> bool:
        """Whether connections are to be resumed."""
        return self.tls and self.mode in (ConnectionMode.RESUMED, ConnectionMode.EARLY_DATA)


def tls_settings(
    options: Options,
    *,
    mode: ConnectionMode = ConnectionMode.COLD,
    alpn: tuple[str, ...] = (),
    tls: bool = True,
    default_port: int = HTTPS_PORT,
    packet: PacketOptions = PLAIN,
    tcp: TcpOptions = PLAIN_TCP,
) -> TlsSettings:
    """The settings that `TLS_OPTIONS` among these options stand for."""
    return TlsSettings(
        mode=mode,
        verify=bool(options.get("verify", True)),
        ca_file=str(options.get("ca_file") or ""),
        alpn=alpn,
        client_certificate=str(options.get("client_certificate") or ""),
        client_key=str(options.get("client_key") or ""),
        groups=str(options.get("groups") or ""),
        library=str(options.get("library") or "auto"),
        ticket_reuse=bool(options.get("ticket_reuse")),
        ticket_age_ns=round(float(options.get("ticket_age") or 0) * 1e9),
        tls=tls,
        default_port=default_port,
        packet=packet,
        tcp=tcp,
    )
