"""TLS 1.3 handshake, full, resumed and with early data: ClientHello sent to the server's flight.

Both ends of the interval are kernel stamps of our own TCP socket, so neither our cryptography nor
a busy loop enters it; the processor time that we spent is a sample of its own. One shot emits
samples of one sequence number: resolve (where asked for), connect, tls_handshake, client_compute,
and setup, their sum as a request would wait for it: resolve + connect + tls_handshake, and with
early data resolve + connect alone.

In mode ``resumed`` a shot offers a ticket of an earlier connection to the same target and address,
once, and the server's word that it was taken is proof; without it the sample is a failure. While no
ticket is at hand a shot makes a full handshake, says so in its mode, and fetches one. In mode
``early_data`` a small request leaves with the ClientHello, and must have been accepted.
"""

from pathbudget.probes.carriers import Moment
from pathbudget.probes.contract import (
    Cost,
    Options,
    OptionSpec,
    Probe,
    ProbeEnvironment,
    ProbeSpec,
    Shot,
)
from pathbudget.probes.errors import Fault
from pathbudget.probes.opening_samples import OpeningTeller
from pathbudget.probes.record import (
    ConnectionMode,
    Metric,
    Transport,
)
from pathbudget.probes.tls.checking import tls_faults
from pathbudget.probes.tls.settings import HTTPS_PORT, TLS_OPTIONS, tls_settings
from pathbudget.probes.tls.stream import TlsStreamDialer

EARLY_REQUEST = "HEAD / HTTP/1.1"
_MODES = (ConnectionMode.COLD, ConnectionMode.RESUMED, ConnectionMode.EARLY_DATA)

OPTIONS = {
    "mode": OptionSpec(
        str,
        "cold",
        "full handshakes, resumed by ticket, or with a request as early data",
        choices=_MODES,
    ),
    "alpn": OptionSpec(str, "", "application protocols to offer, as in h2,http/1.1"),
    "early_request": OptionSpec(
        str, EARLY_REQUEST, "request line that leaves as early data; Host comes by itself"
    ),
    **TLS_OPTIONS,
}


class TlsProbe:
    """See `contract.Probe`."""

    def __init__(self, environment: ProbeEnvironment, options: Options) -> None:
        words = str(options.get("alpn") or "").split(",")
        self._environment = environment
        self._settings = tls_settings(
            options,
            mode=ConnectionMode(str(options.get("mode", "cold"))),
            alpn=tuple(word.strip() for word in words if word.strip()),
        )
        self._early_request = str(options.get("early_request") or EARLY_REQUEST)
        self._dialer = TlsStreamDialer(environment, self._settings)

    def fire(self, shot: Shot) -> None:
        """See `contract.Probe.fire`."""
        early = b""
        if self._settings.mode is ConnectionMode.EARLY_DATA:
            early = early_request(self._early_request, shot)
        told = _Teller(
            self._environment,
            shot,
            handshake=Metric.TLS_HANDSHAKE,
            named_by=Metric.CONNECT,
            verified=self._settings.verify,
        )
        stream = self._dialer.prepare(shot, told, early=early)
        told.connection = stream
        stream.begin()

    async def drain(self) -> None:
        """See `contract.Probe.drain`. Waits for tickets too: the next shot wants them."""
        await self._dialer.drain()

    def close(self) -> None:
        """See `contract.Probe.close`."""
        self._dialer.close()


def early_request(line: str, shot: Shot) -> bytes:
    """The request that leaves as early data (RFC 9112). The server is not asked to close: it would
    say goodbye before it sends its tickets.
    """
    host = shot.target.server_name or shot.target.host
    return f"{line}\r\nHost: {host}\r\n\r\n".encode("utf-8", "replace")


class _Teller(OpeningTeller):
    """A `carriers.StreamListener` to whom only the opening matters."""

    def sent(self, last_byte: int, moment: Moment) -> None:
        """See `carriers.StreamListener.sent`."""

    def acknowledged(self, last_byte: int, moment: Moment) -> None:
        """See `carriers.StreamListener.acknowledged`."""

    def received(self, data: bytes, moment: Moment) -> None:
        """See `carriers.StreamListener.received`."""

    def ended(self) -> None:
        """See `carriers.StreamListener.ended`."""


def _open(environment: ProbeEnvironment, options: Options) -> Probe:
    return TlsProbe(environment, options)


def _check(options: Options) -> list[Fault]:
    return tls_faults(options, ConnectionMode(str(options.get("mode") or "cold")))


def _cost(options: Options) -> Cost:
    """Connection (7 packets), ClientHello, a server's flight with a chain of up to 6 kB, ours."""
    del options
    return Cost(packets=24, bytes=10_000)


def _transport(options: Options) -> Transport:
    del options
    return Transport.TLS


TLS = ProbeSpec(
    name="tls",
    summary="TLS 1.3 handshake, full, resumed or with early data, with connect and total",
    version=2,
    open=_open,
    cost=_cost,
    options=OPTIONS,
    needs_port=True,
    primary_metric=Metric.SETUP,
    default_port=HTTPS_PORT,
    transport=_transport,
    check=_check,
)
