"""One address per measurement: an epoch is the life of one address behind one series.

When the address behind a name changes, the epoch ends and a new measurement begins. A series whose
name does not resolve has an epoch without an address: each of its sends is a failed sample.
"""

import ipaddress
from dataclasses import dataclass

from pathbudget.agents.campaign.plan import SeriesPlan, VantagePlan, schedule_text
from pathbudget.probes.contract import ProbeSpec
from pathbudget.probes.record import AddressFamily, Failure, Measurement


@dataclass(slots=True)
class Epoch:
    """One measurement under way. `fired - answered` shots are still out."""

    number: int
    plan: SeriesPlan
    spec: ProbeSpec
    address: str
    family: AddressFamily | None
    failure: Failure | None
    """Why there is no address."""
    started_monotonic_ns: int
    packets: int
    """What one shot puts on the wire."""
    octets: int
    """Likewise, with all headers and both directions."""
    resolves: bool
    """Whether each shot times the resolution of the name too."""
    fired: int = 0
    answered: int = 0


def literal_family(host: str) -> AddressFamily | None:
    """Family of an address literal; None for a name."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    return AddressFamily.IPV4 if address.version == 4 else AddressFamily.IPV6


def envelope(
    epoch: Epoch,
    plan: VantagePlan,
    *,
    identifier: str,
    started_unix_ns: int,
    software: str,
    scheduling: str = "",
) -> Measurement:
    """The measurement of an epoch as it begins, without samples.

    `scheduling` is how the kernel schedules the sender where that is not the usual way.
    """
    series = epoch.plan
    return Measurement(
        id=identifier,
        vantage=plan.vantage,
        target=series.target,
        probe=series.kind,
        started_unix_ns=started_unix_ns,
        samples=(),
        campaign=plan.campaign,
        probe_version=epoch.spec.version,
        address=epoch.address,
        family=epoch.family,
        options={**series.options, "timeout_ns": series.timeout_ns, "run": plan.run_id},
        schedule=f"{schedule_text(series, plan.seed)} {scheduling}".rstrip(),
        software=software,
        transport=epoch.spec.transport(series.options),
    )
