"""Traces in network namespaces of their own; prints what came, as JSON, by scenario.

    python path_child.py SCENARIO... without SCENARIO...

The later ones are run without any capability. A chain: this host, two routers, a destination.
10.1.0.1 - 10.1.0.2 10.2.0.1 - 10.2.0.2 10.3.0.1 - 10.3.0.2, and fd01::1 to fd03::2 likewise. The
last link takes 1,400 octets; the destination listens for TCP on port 8080.
"""

import asyncio
import importlib
import os
import socket
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import msgspec

from pathbudget.probes.channels import PLAIN, PacketOptions
from pathbudget.probes.clock import SystemClock
from pathbudget.probes.errors import PrivilegeError
from pathbudget.probes.fake_packets import EXCEEDED, icmp_error, mpls_object
from pathbudget.probes.network import SystemNetwork
from pathbudget.probes.record import AddressFamily, Failure
from pathbudget.probes.trace.contract import (
    Flow,
    FlowPacket,
    LabelEntry,
    PathArrival,
    PathBatch,
    PathChannel,
    TraceProtocol,
)
from pathbudget.probes.trace.session_opening import TraceSession
from pathbudget.probes.trace.wire import build, read

CHAIN = importlib.import_module("path_chain")
NARROW, OPEN_PORT = CHAIN.NARROW, CHAIN.OPEN_PORT
V4, V6 = AddressFamily.IPV4, AddressFamily.IPV6
FAR = {V4: "10.3.0.2", V6: "fd03::2"}
SOON = 0.03
Told = dict[str, Any]


class Trace:
    """One channel and what it told."""

    def __init__(
        self,
        network: SystemNetwork,
        family: AddressFamily,
        packet: PacketOptions = PLAIN,
        *,
        privileged: bool = True,
    ) -> None:
        self.family = family
        self.batches: list[PathBatch] = []
        self.feed: Callable[[PathArrival], object] = bool
        channel = network.open_paths(family, self._listen, packet, privileged=privileged)
        assert channel is not None
        self.channel: PathChannel = channel
        self.keys: list[int | Failure] = []

    def _listen(self, batch: PathBatch) -> None:
        self.batches.append(batch)
        for arrival in batch.arrivals:
            self.feed(arrival)

    def flow(self, protocol: TraceProtocol, key: int = 40_001, port: int = 0) -> Flow:
        address = FAR[self.family]
        source = self.channel.source_for(address)
        assert isinstance(source, str)
        if protocol is not TraceProtocol.ICMP:
            port = port or 33_434
        return Flow(protocol, self.family, source, address, key, port)

    def send(self, packets: list[FlowPacket]) -> None:
        self.keys += self.channel.send_all(packets)

    async def heard(self, count: int, seconds: float = 2.0) -> Told:
        """What came, when `count` answers are there."""
        for _ in range(int(seconds * 100)):
            await asyncio.sleep(0.01)
            if sum(len(batch.arrivals) for batch in self.batches) >= count:
                break
        await asyncio.sleep(0.02)
        self.channel.poll()
        arrivals = [one for batch in self.batches for one in batch.arrivals]
        sent = [pair for batch in self.batches for pair in batch.sent]
        answers = [
            {
                "token": answer.token,
                "kind": answer.kind,
                "from": answer.responder,
                "ttl": answer.ttl,
                "quoted_ttl": answer.quoted_ttl,
                "key": answer.flow_key,
                "mtu": answer.mtu,
                "stack": [tuple(one) for one in answer.stack],
                "stamp": answer.kernel_unix_ns,
            }
            for one in arrivals
            if (answer := read(one, self.family)) is not None
        ]
        keys = [key if isinstance(key, int) else str(key.detail) for key in self.keys]
        return {"answers": answers, "sent": sent, "keys": keys, "arrivals": len(arrivals)}

    def close(self) -> None:
        self.channel.close()


async def hops(network: SystemNetwork, protocol: TraceProtocol, family: AddressFamily) -> Told:
    trace = Trace(network, family)
    flow = trace.flow(protocol, key=40_002, port=OPEN_PORT)
    if protocol is TraceProtocol.ICMP:
        flow = flow._replace(port=0)
    trace.send([build(flow, hop, 100 + hop) for hop in range(1, 5)])
    told = await trace.heard(4)
    trace.close()
    return told


async def many(network: SystemNetwork) -> Told:
    """3,000 probes handed over at once: no answer and no stamp is lost."""
    trace = Trace(network, V4)
    trace.send(
        [
            build(trace.flow(TraceProtocol.UDP, key=41_000 + number), hop, 1 + number)
            for number in range(1_000)
            for hop in (1, 2, 3)
        ]
    )
    told = await trace.heard(3_000, seconds=10)
    trace.close()
    pairs = {(one["key"], one["from"]) for one in told["answers"]}
    keys = {key for key, _ in told["sent"]}
    return {
        "pairs": len(pairs),
        "stamps": len(keys),
        "unstamped": sum(one["stamp"] is None for one in told["answers"]),
    }


async def plain(network: SystemNetwork, family: AddressFamily) -> Told:
    trace = Trace(network, family, privileged=False)
    flow = trace.flow(TraceProtocol.UDP, key=40_003)
    other = flow._replace(key=40_004)
    trace.send([build(one, hop, 200 + hop) for one in (flow, other) for hop in range(1, 5)])
    trace.send([build(flow._replace(protocol=TraceProtocol.TCP), 1, 300)])
    told = await trace.heard(8)
    told["privileged"] = trace.channel.privileged
    trace.close()
    return told


async def sizes(network: SystemNetwork, family: AddressFamily, *, privileged: bool) -> Told:
    """Longer than a link takes, and longer than our own takes; twice, for what is remembered."""
    trace = Trace(network, family, privileged=privileged)
    flow = trace.flow(TraceProtocol.UDP, key=40_005)
    for token, size in ((401, 1_450), (402, NARROW), (403, 1_450), (404, 1_501)):
        trace.send([build(flow, 64, token, size=size)])
        await asyncio.sleep(0.03)
    told = await trace.heard(3)
    trace.close()
    return told


async def marked(network: SystemNetwork) -> Told:
    """Traffic class, interface and source, and what is not there."""
    trace = Trace(network, V4, PacketOptions(dscp=46, interface="here", source="10.1.0.1"))
    trace.send([build(trace.flow(TraceProtocol.UDP, key=40_006), 1, 500)])
    await trace.heard(1)
    (arrival,) = (one for batch in trace.batches for one in batch.arrivals)
    trace.close()
    said: list[str] = []
    for options in (PacketOptions(interface="nowhere"), PacketOptions(source="10.7.7.7")):
        try:
            network.open_paths(V4, lambda _: None, options)
        except PrivilegeError as error:
            said.append(str(error))
    return {"class": arrival.data[8 + 1], "said": said}


class Talk:
    """The connection of a trace, which is then used as any other."""

    def __init__(self, trace: Trace, network: SystemNetwork, port: int) -> None:
        self.ready: list[Failure | None] = []
        self.came = b""
        place = (FAR[trace.family], port)
        self.session = TraceSession(
            network, trace.channel, SystemClock(), place, trace.family, self.ready.append
        )
        self.session.received = self.received  # type: ignore[method-assign]

    def received(self, data: bytes, kernel_unix_ns: int | None) -> None:
        del kernel_unix_ns
        self.came += data


async def session(network: SystemNetwork, family: AddressFamily) -> Told:
    trace = Trace(network, family)
    talk = Talk(trace, network, OPEN_PORT)
    trace.feed = talk.session.see
    for _ in range(200):
        await asyncio.sleep(0.01)
        if talk.ready:
            break
    segments = talk.session.segments
    assert segments is not None
    said = [str(one) for one in talk.ready] + [segments.ready, segments.exact]
    trace.send([talk.session.build(hop, 600 + hop) for hop in range(1, 5)])
    await asyncio.sleep(SOON)
    connection = talk.session._connection
    assert connection is not None
    connection.send(b"hello")
    await asyncio.sleep(SOON)
    trace.send([talk.session.build(hop, 610 + hop) for hop in range(1, 5)])
    await asyncio.sleep(SOON)
    connection.send(b" again")
    await asyncio.sleep(SOON)
    told = await trace.heard(0)
    info = connection.info()
    talk.session.close()
    trace.close()
    numbers = None if info is None else (info.bytes_sent, info.retransmits)
    return told | {"said": said, "echo": talk.came.decode(), "info": numbers}


async def extensions(network: SystemNetwork, family: AddressFamily) -> Told:
    """A router that is not there says that a probe has passed a tunnel; nothing else is quoted."""
    trace = Trace(network, family, privileged=False)
    address = "127.0.0.1" if family is V4 else "::1"
    flow = Flow(TraceProtocol.UDP, family, address, address, 40_009, OPEN_PORT)
    packets = [build(flow, 5, token) for token in (701, 702)]
    trace.send(packets)
    stack = mpls_object((LabelEntry(24_015, 0, bottom=False, ttl=1), LabelEntry(16, 5, True, 9)))
    kind, protocol = (
        (socket.AF_INET, socket.IPPROTO_ICMP) if family is V4
        else (socket.AF_INET6, socket.IPPROTO_ICMPV6)
    )  # fmt: skip
    with socket.socket(kind, socket.SOCK_RAW, protocol) as forger:
        whole = icmp_error(family, EXCEEDED, 0, packets[0].data, objects=stack)
        short = icmp_error(family, EXCEEDED, 0, packets[1].data[: 8 + (20 if family is V4 else 40)])
        for message in (whole, short):
            forger.sendto(message, (address, 0))
    told = await trace.heard(3)
    told["answers"] = [one for one in told["answers"] if one["kind"] == "exceeded"]
    trace.close()
    return told


async def foreign(network: SystemNetwork) -> Told:
    """Other people's pings and connections wake nobody."""
    trace = Trace(network, V4)
    with socket.create_connection((FAR[V4], OPEN_PORT)):
        pass
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as ping:
        message = b"\x08\x00\xf7\xfd\x00\x01\x00\x01"
        ping.sendto(message, (FAR[V4], 0))
        await asyncio.sleep(0.1)
        assert ping.recv(100)
    told = await trace.heard(1, seconds=0.1)
    trace.close()
    return told


Scenario = Callable[[SystemNetwork], Awaitable[Told]]


def scenarios() -> dict[str, Scenario]:
    found: dict[str, Scenario] = {"many": many, "marked": marked, "foreign": foreign}
    found["refused"] = partial(hops, protocol=TraceProtocol.UDP, family=V4)
    for family in (V4, V6):
        for protocol in (TraceProtocol.ICMP, TraceProtocol.UDP, TraceProtocol.TCP):
            found[f"{protocol}_{family}"] = partial(hops, protocol=protocol, family=family)
        found[f"plain_{family}"] = partial(plain, family=family)
        found[f"session_{family}"] = partial(session, family=family)
        found[f"extensions_{family}"] = partial(extensions, family=family)
        found[f"sizes_{family}_raw"] = partial(sizes, family=family, privileged=True)
        found[f"sizes_{family}_plain"] = partial(sizes, family=family, privileged=False)
    return found


async def run(names: list[str]) -> dict[str, Told]:
    network = SystemNetwork()
    told: dict[str, Told] = {}
    known = scenarios()
    for name in names:
        try:
            told[name] = await known[name](network)
        except PrivilegeError as error:
            told[name] = {"refused": str(error)}
    network.close()
    return told


def main(with_rights: list[str], without: list[str]) -> None:
    hold = CHAIN.build_chain()
    told = asyncio.run(run(with_rights))
    CHAIN.NAMESPACES.drop_capabilities()
    told |= asyncio.run(run(without))
    for end in hold:
        os.close(end)
    sys.stdout.write(msgspec.json.encode(told).decode())


if __name__ == "__main__":
    at = sys.argv.index("without")
    main(sys.argv[1:at], sys.argv[at + 1 :])
