"""Metric families in the text format of Prometheus: those that are few."""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prometheus_client.core import Metric as MetricFamily

Families = Callable[[], "Iterable[MetricFamily]"]


class FewFamilies:
    """What `families` gives whenever it is asked, and what the kernel says of this process."""

    def __init__(self, families: Families) -> None:
        from prometheus_client import CollectorRegistry, ProcessCollector

        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(_Asked(families))
        ProcessCollector(registry=self._registry)

    def text(self) -> str:
        """All of it."""
        from prometheus_client import generate_latest

        return generate_latest(self._registry).decode()


class _Asked:
    """A collector, as the library calls it."""

    def __init__(self, families: Families) -> None:
        self._families = families

    def collect(self) -> "Iterator[MetricFamily]":
        yield from self._families()

    def describe(self) -> "Iterator[MetricFamily]":
        """Nothing: names are not looked for twice."""
        yield from ()
