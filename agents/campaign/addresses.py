"""From the names of a plan to addresses: which families there are, and where to send."""

from collections.abc import Sequence

import msgspec

from pathbudget.agents.campaign.epochs import literal_family
from pathbudget.agents.campaign.plan import SeriesPlan, VantagePlan
from pathbudget.probes.network import Network
from pathbudget.probes.record import AddressFamily, Failure


async def with_families(plan: VantagePlan, network: Network) -> VantagePlan:
    """The plan with every series that is open to any family split into those that exist."""
    series: list[SeriesPlan] = []
    for one in plan.series:
        families = (one.family,) if one.family else await _families(one, network)
        series.extend(msgspec.structs.replace(one, family=family) for family in families)
    return msgspec.structs.replace(plan, series=tuple(series))


async def _families(series: SeriesPlan, network: Network) -> tuple[AddressFamily | None, ...]:
    literal = literal_family(series.target.host)
    if literal is not None:
        return (literal,)
    found: list[AddressFamily | None] = []
    for family in AddressFamily:
        answer = await network.resolve(series.target.host, family)
        if isinstance(answer, Failure):
            continue
        if network.has_route(answer.addresses[0], family):
            found.append(family)
    return tuple(found) or (None,)


async def addresses_of(
    series: SeriesPlan, network: Network
) -> tuple[Sequence[str], AddressFamily | None, Failure | None]:
    """Addresses of the first family that has some; without any, why there are none."""
    if literal_family(series.target.host) is not None:
        return (series.target.host,), series.family, None
    failure = None
    for family in (series.family,) if series.family else tuple(AddressFamily):
        answer = await network.resolve(series.target.host, family)
        if not isinstance(answer, Failure):
            return answer.addresses, family, None
        failure = failure or answer
    return (), None, failure
