"""Who opens connections, by transport."""

from pathbudget.probes.channels import TcpOptions
from pathbudget.probes.clock import ClockWatcher
from pathbudget.probes.contract import Options, ProbeEnvironment
from pathbudget.probes.dns.links import LinkDialer
from pathbudget.probes.dns.settings import PORTS, DnsSettings
from pathbudget.probes.dns.stream_link import StreamLinks
from pathbudget.probes.record import ConnectionMode
from pathbudget.probes.tls.settings import TlsSettings, tls_settings
from pathbudget.probes.tls.stream import TlsStreamDialer

TCP = TcpOptions(quick_ack=True)
"""Else the answer of a server that leaves Nagle's algorithm on waits, behind its second session
ticket, until our kernel acknowledges the first: 40 ms that no path is to blame for.
"""


def over_tcp(environment: ProbeEnvironment, watcher: ClockWatcher) -> StreamLinks:
    """Over TCP alone."""
    settings = TlsSettings(tls=False, default_port=PORTS["tcp"], tcp=TCP)
    return StreamLinks(TlsStreamDialer(environment, settings), watcher)


def dialer_for(
    environment: ProbeEnvironment, watcher: ClockWatcher, options: Options, settings: DnsSettings
) -> LinkDialer:
    """For one of the transports that have connections. Raises ConfigError."""
    if settings.transport == "tcp":
        return over_tcp(environment, watcher)
    mode = ConnectionMode(settings.mode)
    if settings.transport == "doq":
        from pathbudget.probes.dns.quic_link import ALPN, QuicLinks
        from pathbudget.probes.quic.dialer import QuicDialer, quic_settings

        quic = quic_settings(options, mode=mode, alpn=ALPN, default_port=settings.port)
        return QuicLinks(QuicDialer(environment, quic), watcher)
    if settings.transport == "doh":
        from pathbudget.probes.dns.http_link import HttpLinks
        from pathbudget.probes.http.dial import http_dialer, http_settings
        from pathbudget.probes.http.settings import HTTP_2

        chosen = http_settings(
            {**options, "version": HTTP_2}, mode=mode, default_port=settings.port, tcp=TCP
        )
        return HttpLinks(http_dialer(environment, chosen), watcher, settings.path, settings.port)
    tls = tls_settings(options, mode=mode, default_port=settings.port, tcp=TCP)
    return StreamLinks(TlsStreamDialer(environment, tls), watcher)
