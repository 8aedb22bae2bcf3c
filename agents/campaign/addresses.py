"""From the names of a plan to addresses: which families there are, and where to send."""

import asyncio
from collections.abc import Sequence

import msgspec

from pathbudget.agents.campaign.epochs import literal_family
from pathbudget.agents.campaign.plan import SeriesPlan, VantagePlan
from pathbudget.probes.channels import Network, Resolution
from pathbudget.probes.record import AddressFamily, Failure

AT_ONCE = 16
"""Look-ups: a resolver that hangs holds up few others, and one that lives is not flooded."""


class Names:
    """One round of look-ups: every name once in each family, `AT_ONCE` at once."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self._turn = asyncio.Semaphore(AT_ONCE)
        self._asked: dict[tuple[str, AddressFamily], asyncio.Task[Resolution | Failure]] = {}

    async def resolve(self, host: str, family: AddressFamily) -> Resolution | Failure:
        """What the resolver says of a name, or has said to another series in this round."""
        task = self._asked.get((host, family))
        if task is None:
            task = self._asked[host, family] = asyncio.create_task(self._ask(host, family))
        return await task

    async def _ask(self, host: str, family: AddressFamily) -> Resolution | Failure:
        async with self._turn:
            return await self.network.resolve(host, family)


async def with_families(plan: VantagePlan, names: Names) -> VantagePlan:
    """The plan with every series that is open to any family split into those that exist."""
    found = await asyncio.gather(*(_families(one, names) for one in plan.series))
    series = [
        msgspec.structs.replace(one, family=family)
        for one, families in zip(plan.series, found, strict=True)
        for family in families
    ]
    return msgspec.structs.replace(plan, series=tuple(series))


async def _families(series: SeriesPlan, names: Names) -> tuple[AddressFamily | None, ...]:
    if series.family is not None:
        return (series.family,)
    literal = literal_family(series.target.host)
    if literal is not None:
        return (literal,)
    host, found = series.target.host, list[AddressFamily | None]()
    answers = await asyncio.gather(*(names.resolve(host, family) for family in AddressFamily))
    for family, answer in zip(AddressFamily, answers, strict=True):
        if isinstance(answer, Failure):
            continue
        if names.network.has_route(answer.addresses[0], family):
            found.append(family)
    return tuple(found) or (None,)


async def addresses_of(
    series: SeriesPlan, names: Names
) -> tuple[Sequence[str], AddressFamily | None, Failure | None]:
    """Addresses of the first family that has some; without any, why there are none."""
    if literal_family(series.target.host) is not None:
        return (series.target.host,), series.family, None
    failure = None
    for family in (series.family,) if series.family else tuple(AddressFamily):
        answer = await names.resolve(series.target.host, family)
        if not isinstance(answer, Failure):
            return answer.addresses, family, None
        failure = failure or answer
    return (), None, failure
