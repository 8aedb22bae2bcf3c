"""What agents say of themselves, as metrics: plan, spool, clock, noise floor, delivery."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pathbudget.agents.daemon.status import AgentStatus
from pathbudget.agents.watch.buckets import NS
from pathbudget.agents.watch.text import PREFIX
from pathbudget.probes.record import SyncState

if TYPE_CHECKING:
    from prometheus_client.core import Metric as MetricFamily

_Value = Callable[[AgentStatus], float | None]


@dataclass(frozen=True, slots=True)
class HostMetric:
    """One number of an agent. `value` is None where the agent does not know it."""

    name: str
    help: str
    value: _Value
    is_counter: bool = False

    @property
    def full_name(self) -> str:
        """As it is asked for."""
        return f"{PREFIX}_{self.name}{'_total' if self.is_counter else ''}"


def _seconds(ns: int | None) -> float | None:
    return None if ns is None else ns / NS


def _of_clock(name: str) -> _Value:
    return lambda one: None if one.clock is None else _seconds(getattr(one.clock, name))


def _of_noise(name: str) -> _Value:
    return lambda one: None if one.noise is None else _seconds(getattr(one.noise, name))


def _synchronised(one: AgentStatus) -> float | None:
    if one.clock is None or one.clock.sync_state is SyncState.UNKNOWN:
        return None
    return float(one.clock.sync_state is SyncState.SYNCHRONISED)


def _skew(one: AgentStatus) -> float | None:
    clock = one.clock
    return None if clock is None or clock.skew_ppm is None else clock.skew_ppm / 1e6


HOST_METRICS = (
    HostMetric(
        "agent_status_timestamp_seconds",
        "When the agent last said how it is, by its own clock.",
        lambda one: one.at_unix_ns / NS,
    ),
    HostMetric("plan_serial", "Serial of the plan that is carried out.", lambda one: one.serial),
    HostMetric("plan_series", "Series of that plan.", lambda one: one.series),
    HostMetric("plan_expired", "1: the plan has expired, and nothing is sent.",
               lambda one: one.expired),
    HostMetric("quiet", "1: quiet hours of the host, and nothing is sent.",
               lambda one: one.quiet),
    HostMetric("bytes_used_up", "1: the bytes of today are used up, and nothing is sent.",
               lambda one: one.spent),
    HostMetric("today_bytes", "What was sent and received today.", lambda one: one.bytes_today),
    HostMetric("spool_samples", "Samples that wait to be delivered.",
               lambda one: one.spool.waiting_samples),
    HostMetric("spool_measurements", "Measurements that wait to be delivered.",
               lambda one: one.spool.waiting_entries),
    HostMetric("spool_bytes", "What waits to be delivered.",
               lambda one: one.spool.waiting_bytes),
    HostMetric(
        "spool_oldest_timestamp_seconds",
        "When the oldest that waits came into the spool; absent where nothing waits.",
        lambda one: _seconds(one.spool.oldest_unix_ns),
    ),
    HostMetric("spool_made_samples", "Samples that came into the spool, over all restarts.",
               lambda one: one.spool.made_samples, is_counter=True),
    HostMetric("spool_acknowledged_samples", "Samples that somebody has vouched for.",
               lambda one: one.spool.acknowledged_samples, is_counter=True),
    HostMetric(
        "last_delivery_timestamp_seconds",
        "When results were last acknowledged; absent before the first time.",
        lambda one: _seconds(one.delivered_unix_ns),
    ),
    HostMetric("trouble", "1: results cannot be handed on, or the disk takes none.",
               lambda one: bool(one.trouble)),
    HostMetric("clock_synchronised", "1: the kernel says that the clock is synchronised, 0: not.",
               _synchronised),
    HostMetric("clock_error_bound_seconds", "Largest error of the clock that its source admits.",
               _of_clock("offset_bound_ns")),
    HostMetric("clock_error_estimate_seconds", "Error of the clock that its source expects.",
               _of_clock("estimated_error_ns")),
    HostMetric("clock_skew_ratio", "By how much the rate of the clock may be wrong.", _skew),
    HostMetric("clock_steps", "Steps of the clock since the plan was begun.",
               lambda one: None if one.clock is None else one.clock.steps),
    HostMetric("noise_floor_seconds", "A difference below it is noise on this host.",
               _of_noise("floor_ns")),
    HostMetric("timer_lateness_p99_seconds", "Of the self-test when the plan was begun.",
               _of_noise("timer_lateness_p99_ns")),
    HostMetric("receive_lag_p99_seconds", "From the kernel's receive stamp to the agent.",
               _of_noise("receive_lag_p99_ns")),
    HostMetric("steal_ratio", "Share of processor time that the hypervisor took.",
               lambda one: None if one.noise is None else one.noise.steal_ratio),
)  # fmt: skip
"""In the order of the page."""
INFO = f"{PREFIX}_agent_info"
DROPPED = f"{PREFIX}_spool_dropped_samples_total"


def host_families(statuses: Iterable[AgentStatus]) -> "Iterator[MetricFamily]":
    """What all of them say, each under the name of its agent."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    told = list(statuses)
    info = GaugeMetricFamily(INFO, "What an agent is.", labels=["agent", "campaign", "software"])
    dropped = CounterMetricFamily(
        DROPPED, "Samples that were dropped, by reason.", labels=["agent", "reason"]
    )
    for one in told:
        info.add_metric([one.agent, one.campaign, one.software], 1)
        for reason, count in sorted(one.spool.dropped_samples.items()):
            dropped.add_metric([one.agent, reason], count)
    yield info
    yield dropped
    for metric in HOST_METRICS:
        family = (CounterMetricFamily if metric.is_counter else GaugeMetricFamily)(
            metric.full_name, metric.help, labels=["agent"]
        )
        for one in told:
            value = metric.value(one)
            if value is not None:
                family.add_metric([one.agent], float(value))
        yield family
