"""Every fault in the options of a `dns` probe.

Names and types are read by dnspython: without it they are left to the opening.
"""

from pathbudget.probes.contract import Options
from pathbudget.probes.dns.settings import option_faults
from pathbudget.probes.errors import Fault
from pathbudget.probes.quic.checking import quic_faults
from pathbudget.probes.record import ConnectionMode
from pathbudget.probes.tls.checking import tls_faults


def check(options: Options) -> list[Fault]:
    """See `contract.ProbeSpec.check`."""
    return [*option_faults(options), *_question_faults(options), *_carrier_faults(options)]


def _question_faults(options: Options) -> list[Fault]:
    words = [str(options.get(name) or "") for name in ("name", "type", "zone")]
    try:
        from pathbudget.probes.dns.questions import question_faults
    except ImportError:
        return []
    return question_faults(*words)


def _carrier_faults(options: Options) -> list[Fault]:
    transport = options.get("transport")
    if transport == "doq":
        return quic_faults(options)
    if transport in ("dot", "doh"):
        return tls_faults(options, ConnectionMode(str(options.get("mode") or "cold")))
    return []
