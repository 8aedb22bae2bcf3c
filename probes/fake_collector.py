"""Opens a probe for a test and keeps what it says. Shipped for the tests of third-party probes."""

import random
from collections import Counter
from dataclasses import dataclass, field

from pathbudget.probes.channels import Network
from pathbudget.probes.clock import Clock
from pathbudget.probes.contract import Options, Probe, ProbeEnvironment, ProbeSpec, Shot
from pathbudget.probes.record import AddressFamily, Sample, Target

SECOND_NS = 1_000_000_000


@dataclass
class Collector:
    """The environment of one probe under test."""

    network: Network
    clock: Clock
    rng: random.Random = field(default_factory=lambda: random.Random(7))
    emitted: list[tuple[int, Sample]] = field(default_factory=list[tuple[int, Sample]])
    """Series and sample, in the order they came."""
    counts: Counter[tuple[int, str]] = field(default_factory=Counter[tuple[int, str]])
    """By series and word."""

    def open(self, spec: ProbeSpec, options: Options | None = None) -> Probe:
        """Open the probe with these options; the defaults stand for the others."""
        environment = ProbeEnvironment(
            network=self.network,
            clock=self.clock,
            rng=self.rng,
            emit=lambda series, sample: self.emitted.append((series, sample)),
            count=self._count,
        )
        defaults = {name: option.default for name, option in spec.options.items()}
        return spec.open(environment, {**defaults, **(options or {})})

    def of(self, metric: str) -> list[Sample]:
        """All samples of one metric."""
        return [sample for _, sample in self.emitted if sample.metric == metric]

    def only(self, metric: str) -> Sample:
        """The one sample of a metric; an error where there is not exactly one."""
        (sample,) = self.of(metric)
        return sample

    def counted(self, word: str) -> int:
        """How often something was counted, in all series."""
        return sum(count for (_, one), count in self.counts.items() if one == word)

    def _count(self, series: int, word: str) -> None:
        self.counts[series, word] += 1


def shot_at(
    address: str,
    *,
    seq: int = 0,
    series: int = 0,
    host: str = "",
    port: int | None = None,
    timeout_ns: int = SECOND_NS,
    resolve: bool = False,
    lateness_ns: int = 0,
    server_name: str = "",
) -> Shot:
    """A shot at an address; the family is seen from how it is written."""
    family = AddressFamily.IPV6 if ":" in address else AddressFamily.IPV4
    target = Target("target", host or address, port=port, server_name=server_name)
    return Shot(series, seq, target, address, family, timeout_ns, lateness_ns, resolve)
