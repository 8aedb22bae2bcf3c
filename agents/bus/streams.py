"""What the servers keep: results until a collector has them, plans, and how agents are."""

from typing import TYPE_CHECKING

from pathbudget.agents.bus.subjects import (
    COLLECTORS,
    MOST_OCTETS,
    PLANS,
    RESULTS,
    RESULTS_STREAM,
    STATUS,
)
from pathbudget.probes.errors import BusError

if TYPE_CHECKING:
    from nats.js import JetStreamContext
    from nats.js.api import ConsumerConfig, StreamConfig

SEEN_FOR_S = 2 * 3600.0
"""An id that comes again within this time is dropped by the server; later the store drops it."""
ACK_WAIT_S = 30.0
"""A collector that says nothing for so long is taken for dead, and others get its messages."""
MOST_UNACKNOWLEDGED = 20_000
DAY_S = 86_400.0


async def ensure_streams(
    stream: "JetStreamContext", *, replicas: int = 1, most_octets: int = 10 << 30
) -> None:
    """Make what is not there, and change what is otherwise. Raises BusError.

    A results stream that is full takes no more, so that what is new waits in the spools of the
    agents: nothing is dropped in the middle.
    """
    from nats.js.errors import Error, NotFoundError

    try:
        for config in (results_config(replicas, most_octets), *_buckets(replicas)):
            try:
                await stream.stream_info(str(config.name))
            except NotFoundError:
                await stream.add_stream(config)
            else:
                await stream.update_stream(config)
        await stream.add_consumer(RESULTS_STREAM, collectors_config())
    except (Error, TimeoutError) as error:
        raise BusError(f"streams cannot be made: {str(error) or type(error).__name__}") from None


def results_config(replicas: int, most_octets: int) -> "StreamConfig":
    """A queue: what is acknowledged is gone."""
    from nats.js.api import DiscardPolicy, RetentionPolicy, StorageType, StreamConfig

    return StreamConfig(
        name=RESULTS_STREAM,
        subjects=[f"{RESULTS}.*"],
        retention=RetentionPolicy.WORK_QUEUE,
        discard=DiscardPolicy.NEW,
        storage=StorageType.FILE,
        num_replicas=replicas,
        max_bytes=most_octets,
        max_msg_size=MOST_OCTETS,
        duplicate_window=SEEN_FOR_S,
    )


def collectors_config() -> "ConsumerConfig":
    """One consumer that all collectors pull from."""
    from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

    return ConsumerConfig(
        durable_name=COLLECTORS,
        deliver_policy=DeliverPolicy.ALL,
        ack_policy=AckPolicy.EXPLICIT,
        ack_wait=ACK_WAIT_S,
        max_ack_pending=MOST_UNACKNOWLEDGED,
    )


def _buckets(replicas: int) -> tuple["StreamConfig", ...]:
    """Key-value buckets as streams, so that their last values can be read key by key."""
    return _bucket(PLANS, replicas, 5), _bucket(STATUS, replicas, 1)


def _bucket(name: str, replicas: int, history: int) -> "StreamConfig":
    from nats.js.api import DiscardPolicy, StorageType, StreamConfig

    return StreamConfig(
        name=f"KV_{name}",
        subjects=[f"$KV.{name}.>"],
        max_msgs_per_subject=history,
        discard=DiscardPolicy.NEW,
        storage=StorageType.FILE,
        num_replicas=replicas,
        max_msg_size=MOST_OCTETS,
        allow_rollup_hdrs=True,
        allow_direct=True,
        deny_delete=True,
    )
