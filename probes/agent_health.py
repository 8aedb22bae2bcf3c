"""The words for what an agent measures of itself, once a piece (docs/agent.md).

Such a measurement has `AGENT` as its probe and the agent as its target, clock and noise in its
envelope, and one sample per metric. It is about no path, so it is in no evaluation.
"""

from enum import StrEnum

AGENT = "agent"
"""`Measurement.probe`."""


class HealthMetric(StrEnum):
    """What the number of such a sample means; all are nanoseconds."""

    SEND_LATENESS = "send_lateness"
    """How late probes left: the worst 99th percentile over five seconds."""
    RECEIVE_LAG = "receive_lag"
    """From the kernel's receive stamp to user space: likewise."""
    TIMER_LATENESS = "timer_lateness"
    """How late an alarm rang in the self-test when the plan was begun, 99th percentile."""
    NOISE_FLOOR = "noise_floor"
    """`NoiseFloor.floor_ns`: the worst over five seconds."""
    CLOCK_BOUND = "clock_bound"
    """Largest error of the wall clock that somebody admits; a failure where nobody does."""
    STOLEN = "stolen"
    """Processor time that the hypervisor took, of all processors together."""
    PROCESSOR = "processor"
    """Processor time that the agent used, with the processes it started that have ended."""
    SPOOL_AGE = "spool_age"
    """How long the oldest result has waited in the spool; 0 where none waits."""
