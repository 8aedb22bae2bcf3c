"""The dns probe: how long a resolver takes for a name that it has at hand, and for a new one.

Read `udp_session.py` for what counts as an answer, `caches.py` for hit and miss, `asking.py` for
questions over connections. dnspython is loaded when the probe is opened, not before.
"""

from pathbudget.probes.contract import Cost, Options, Probe, ProbeEnvironment, ProbeSpec
from pathbudget.probes.dns.checking import check
from pathbudget.probes.dns.settings import CARRIERS, OPTIONS, fault
from pathbudget.probes.errors import ConfigError
from pathbudget.probes.record import Metric, Transport

_HEADERS = 48
"""IPv6 and UDP; an upper bound for IPv4."""
_QUESTION = 128


def _open(environment: ProbeEnvironment, options: Options) -> Probe:
    try:
        from pathbudget.probes.dns.opened import open_probe
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("pathbudget"):
            raise
        problem = f"the package {error.name} is not installed"
        hint = "pip install 'pathbudget[request]'"
        raise ConfigError([fault("", problem, hint)]) from error
    return open_probe(environment, options)


def _cost(options: Options) -> Cost:
    """A question and an answer; over a connection its set-up too, and the end of it."""
    questions = 2 if options.get("zone") else 1
    answer = int(str(options.get("payload") or OPTIONS["payload"].default))
    octets = 2 * _HEADERS + _QUESTION + answer
    if str(options.get("transport") or "udp") == "udp":
        copies = 1 + int(str(options.get("retries") or 0))
        return Cost(packets=2 * questions * copies, bytes=octets * questions * copies)
    if options.get("mode") == "warm":
        return Cost(packets=4 * questions, bytes=octets * questions)
    return Cost(packets=28 * questions, bytes=(10_000 + octets) * questions)


def _transport(options: Options) -> Transport | None:
    return CARRIERS.get(str(options.get("transport") or "udp"))


DNS = ProbeSpec(
    name="dns",
    summary="question to answer of a resolver, hit and miss: UDP, TCP, TLS, HTTPS, QUIC",
    version=1,
    open=_open,
    cost=_cost,
    options=OPTIONS,
    needs_port=True,
    own_port=True,
    primary_metric=Metric.DNS_HIT,
    transport=_transport,
    check=check,
)
