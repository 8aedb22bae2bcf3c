"""How QUIC connections are opened: what a user may choose, and the same checked."""

from dataclasses import dataclass

from pathbudget.probes.channels import PacketOptions
from pathbudget.probes.contract import Options
from pathbudget.probes.record import ConnectionMode
from pathbudget.probes.tls.settings import HTTPS_PORT, TLS_OPTIONS

UNFRAGMENTED = PacketOptions(fragment=False)
"""A QUIC datagram is never fragmented (RFC 9000, 14)."""

_SHARED = (
    "verify",
    "ca_file",
    "client_certificate",
    "client_key",
    "ticket_reuse",
    "ticket_age",
)
QUIC_OPTIONS = {name: TLS_OPTIONS[name] for name in _SHARED}
"""What every probe over QUIC offers; the words mean what they mean over TCP."""


@dataclass(frozen=True, slots=True)
class QuicSettings:
    """How connections are opened. `mode` is what is wished for.

    Modes without a set-up of their own (warm, idle) are opened cold.
    """

    mode: ConnectionMode = ConnectionMode.COLD
    verify: bool = True
    ca_file: str = ""
    alpn: tuple[str, ...] = ("h3",)
    client_certificate: str = ""
    client_key: str = ""
    ticket_reuse: bool = False
    ticket_age_ns: int = 0
    default_port: int = HTTPS_PORT
    """Where a target names none."""
    packet: PacketOptions = UNFRAGMENTED

    @property
    def wants_tickets(self) -> bool:
        """Whether connections are to be resumed."""
        return self.mode in (ConnectionMode.RESUMED, ConnectionMode.EARLY_DATA)


def quic_settings(
    options: Options,
    *,
    mode: ConnectionMode = ConnectionMode.COLD,
    alpn: tuple[str, ...] = ("h3",),
    default_port: int = HTTPS_PORT,
    packet: PacketOptions = UNFRAGMENTED,
) -> QuicSettings:
    """The settings that `QUIC_OPTIONS` among these options stand for."""
    return QuicSettings(
        mode=mode,
        verify=bool(options.get("verify", True)),
        ca_file=str(options.get("ca_file") or ""),
        alpn=alpn,
        client_certificate=str(options.get("client_certificate") or ""),
        client_key=str(options.get("client_key") or ""),
        ticket_reuse=bool(options.get("ticket_reuse")),
        ticket_age_ns=round(float(options.get("ticket_age") or 0) * 1e9),
        default_port=default_port,
        packet=packet,
    )
