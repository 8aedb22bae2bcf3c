"""Absolute error of round trips against a packet capture on the prober's own interface.

    sudo .venv/bin/python benchmarks/wire/wire_error.py [--quick]

Every value is compared with the capture's own round trip of the same packet: value minus wire.
Columns are the median and the 99th percentile of the absolute error, and the largest; for other
tools the median keeps its sign. Loss is checked in every row: `n` of `sent` were compared.
"""

import argparse
import json
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from capture import Capture, Packet
from others import TOOLS
from path import ADDRESS, PEER, PROBER, Delay, Veth, inside

from pathbudget.probes.stamp.loss_direction import FIRST_NUMBER

ICMP = {4: 1, 6: 58}
REQUEST, REPLY = {4: 8, 6: 128}, {4: 0, 6: 129}
TCP, UDP = 6, 17
NUMBER_MASK = (1 << 48) - 1
STAMP_PORT, TCP_PORT, CLOSED_PORT = 8620, 8443, 8444
HERE = Path(__file__).parent


def echoes(packets: Iterable[Packet], family: int) -> list[tuple[int, bytes, int | None]]:
    """(sent, request, received) of every echo request, in the order of sending."""
    found: list[list[object]] = []
    open_: dict[tuple[bytes, bytes], list[object]] = {}
    for packet in packets:
        if packet.protocol != ICMP[family] or len(packet.payload) < 8:
            continue
        key = (packet.payload[4:8], packet.payload[8:24])
        if packet.payload[0] == REQUEST[family]:
            row: list[object] = [packet.unix_ns, packet.payload, None]
            found.append(row)
            open_[key] = row
        elif packet.payload[0] == REPLY[family] and key in open_ and open_[key][2] is None:
            open_[key][2] = packet.unix_ns
    return [(row[0], row[1], row[2]) for row in found]  # type: ignore[misc]


def icmp_wire(packets: Iterable[Packet], family: int) -> dict[int, int]:
    """Round trip on the wire by the number in the payload of our probes."""
    wire: dict[int, int] = {}
    for sent, request, received in echoes(packets, family):
        if received is not None and len(request) >= 24:
            (number,) = struct.unpack_from("!Q", request, 16)
            wire[number & NUMBER_MASK] = received - sent
    return wire


def tcp_wire(packets: Iterable[Packet]) -> dict[int, list[tuple[int, int]]]:
    """(sent, round trip) of every SYN by its source port."""
    wire: dict[int, list[tuple[int, int]]] = {}
    sent: dict[int, int] = {}
    for packet in packets:
        if packet.protocol != TCP or len(packet.payload) < 20:
            continue
        source, destination, _, _, _, flags = struct.unpack_from("!HHIIBB", packet.payload)
        if flags & 0x12 == 0x02:
            sent[source] = packet.unix_ns
        elif destination in sent and (flags & 0x12 == 0x12 or flags & 0x04):
            began = sent.pop(destination)
            wire.setdefault(destination, []).append((began, packet.unix_ns - began))
    return wire


def stamp_wire(packets: Iterable[Packet]) -> dict[int, int]:
    """Request to reply, by sequence number, at whichever end the capture was taken."""
    began: dict[int, int] = {}
    wire: dict[int, int] = {}
    for packet in packets:
        if packet.protocol != UDP or len(packet.payload) < 8 + 44:
            continue
        source, destination = struct.unpack_from("!HH", packet.payload)
        (first,) = struct.unpack_from("!I", packet.payload, 8)
        if destination == STAMP_PORT:
            began.setdefault(first, packet.unix_ns)
        elif source == STAMP_PORT:
            (seq,) = struct.unpack_from("!I", packet.payload, 8 + 24)
            if seq in began:
                wire.setdefault(seq, packet.unix_ns - began[seq])
    return wire


def run_ours(name: str, address: str, port: int, rate: float, count: int, busy: bool) -> list[dict]:
    command = [sys.executable, str(HERE / "ours.py"), name, address, str(port), str(rate)]
    command += [str(count), "busy" if busy else "calm"]
    done = subprocess.run(inside(PROBER, *command), stdout=subprocess.PIPE, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def row(
    title: str, errors: Sequence[float], sent: int, note: str = "", signed: bool = False
) -> None:
    if not errors:
        print(f"{title:44} nothing to compare of {sent}  {note}")
        return
    middle = sorted(errors)[len(errors) // 2]
    sizes = sorted(abs(one) for one in errors)
    p50 = middle if signed else sizes[len(sizes) // 2]
    p99 = sizes[min(len(sizes) - 1, int(len(sizes) * 0.99))]
    print(
        f"{title:44}{p50 / 1e3:+9.1f}{p99 / 1e3:9.1f}{sizes[-1] / 1e3:9.1f}"
        f"{len(errors):8}/{sent:<7}{note}",
        flush=True,
    )


def _sources(samples: Sequence[dict]) -> str:
    words = sorted({one["source"] for one in samples if one["value_ns"] is not None})
    return ",".join(words)


def icmp_row(title: str, file: Path, family: int, rate: float, count: int, busy: bool) -> None:
    with Capture(PROBER, file) as capture:
        samples = run_ours("icmp", ADDRESS[family][1], 0, rate, count, busy)
    wire = icmp_wire(capture.packets(), family)
    errors = [
        one["value_ns"] - wire[one["seq"]]
        for one in samples
        if one["value_ns"] is not None and one["seq"] in wire
    ]
    row(title, errors, count, f"{_sources(samples)} capture dropped {capture.dropped}")


def tcp_row(
    title: str, file: Path, family: int, rate: float, count: int, busy: bool, name: str = "tcp",
    port: int = TCP_PORT,
) -> None:  # fmt: skip
    with Capture(PROBER, file) as capture:
        samples = run_ours(name, ADDRESS[family][1], port, rate, count, busy)
    wire = tcp_wire(capture.packets())
    errors = []
    for one in samples:
        near = [
            trip
            for began, trip in wire.get(one["flow"], [])
            if abs(began - one["sent_unix_ns"]) < 20_000_000
        ]
        if one["value_ns"] is not None and one["metric"] == "connect" and len(near) == 1:
            errors.append(one["value_ns"] - near[0])
    row(title, errors, count, _sources(samples))


def stamp_rows(
    title: str, file: Path, family: int, rate: float, count: int, busy: bool, residual: bool
) -> None:
    command = [sys.executable, "-m", "pathbudget.agents.cli.main", "reflector"]
    command = [str(Path(sys.executable).with_name("pathbudget")), "reflector"]
    command += ["--port", str(STAMP_PORT), "--rate", "100000", "--total-rate", "100000"]
    reflector = subprocess.Popen(inside(PEER, *command), stdout=subprocess.DEVNULL)
    try:
        subprocess.run(["sleep", "2"], check=True)
        other = file.with_suffix(".peer")
        with Capture(PEER, other) as far, Capture(PROBER, file) as near:
            samples = run_ours("stamp", ADDRESS[family][1], STAMP_PORT, rate, count, busy)
    finally:
        reflector.terminate()
        reflector.wait()
    whole, held = stamp_wire(near.packets()), stamp_wire(far.packets())
    residence = {one["seq"]: one["value_ns"] for one in samples if one["metric"] == "residence"}
    late = 0
    plain, net = [], []
    for one in samples:
        seq = one["seq"] + FIRST_NUMBER
        if one["metric"] != "rtt" or one["value_ns"] is None or seq not in whole:
            continue
        plain.append(one["value_ns"] + (residence.get(one["seq"]) or 0) - whole[seq])
        if one["source"] != "kernel":
            late += 1
        elif seq in held:
            net.append(one["value_ns"] - (whole[seq] - held[seq]))
    row(f"UDP   {title}", plain, count, _sources(samples))
    if residual:
        row(f"STAMP {title}, residence out", net, count, f"{late} without the follow-up's stamp")


def tool_rows(file: Path, family: int, count: int) -> None:
    address = ADDRESS[family][1]
    for name, tool in TOOLS.items():
        with Capture(PROBER, file) as capture:
            reported = tool(address, count)
        wire = [
            received - sent
            for sent, _, received in echoes(capture.packets(), family)
            if received is not None
        ]
        same = len(wire) == len(reported)
        errors = [ours - theirs for ours, theirs in zip(reported, wire, strict=False)]
        note = "" if same else f"{len(reported)} reported, {len(wire)} on the wire"
        row(f"IPv{family} {name}, idle", errors if same else [], count, note, signed=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the packets")
    parser.add_argument("--only", default="", help="icmp, tcp, stamp or tools")
    asked = parser.parse_args()
    scale = 0.1 if asked.quick else 1.0
    many, few = int(25_000 * scale), int(1_000 * scale)
    print(f"{'error against the wire, us':44}{'p50':>9}{'p99':>9}{'max':>9}{'n':>8}/sent")

    def wanted(kind: str) -> bool:
        return asked.only in ("", kind)

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "wire.pcap"
        for family in (4, 6):
            with Veth():
                server = _listener()
                try:
                    if wanted("icmp"):
                        icmp_row(
                            f"ICMP  IPv{family} veth, idle 100/s", file, family, 100, few, False
                        )
                        icmp_row(
                            f"ICMP  IPv{family} veth, 5,000/s", file, family, 5_000, many, False
                        )
                        icmp_row(
                            f"ICMP  IPv{family} veth, 5,000/s, busy loop",
                            file,
                            family,
                            5_000,
                            many,
                            True,
                        )
                    if wanted("stamp"):
                        stamp_rows(
                            f"IPv{family} veth, idle 100/s", file, family, 100, few, False, True
                        )
                        stamp_rows(
                            f"IPv{family} veth, 5,000/s", file, family, 5_000, many, False, True
                        )
                        stamp_rows(
                            f"IPv{family} veth, 5,000/s, busy loop",
                            file,
                            family,
                            5_000,
                            many,
                            True,
                            True,
                        )
                    if wanted("tcp"):
                        tcp_row(
                            f"TCP   IPv{family} veth, idle 100/s", file, family, 100, few, False
                        )
                        tcp_row(
                            f"TCP   IPv{family} veth, 2,000/s",
                            file,
                            family,
                            2_000,
                            many // 4,
                            False,
                        )
                        tcp_row(f"TCP   IPv{family} veth, busy loop", file, family, 200, few, True)
                        tcp_row(
                            f"TCP   IPv{family} veth, refused",
                            file,
                            family,
                            100,
                            few,
                            False,
                            port=CLOSED_PORT,
                        )
                        tcp_row(
                            f"SYN   IPv{family} veth, idle 100/s",
                            file,
                            family,
                            100,
                            few,
                            False,
                            "tcp-syn",
                        )
                    if wanted("tools"):
                        tool_rows(file, family, few // 2)
                finally:
                    server.terminate()
                    server.wait()
            with Delay(290):
                server = _listener()
                try:
                    if wanted("icmp"):
                        icmp_row(
                            f"ICMP  IPv{family} 580 ms, 2,900 in flight",
                            file,
                            family,
                            5_000,
                            many,
                            False,
                        )
                        icmp_row(
                            f"ICMP  IPv{family} 580 ms, and a busy loop",
                            file,
                            family,
                            5_000,
                            many,
                            True,
                        )
                    if wanted("stamp"):
                        stamp_rows(
                            f"IPv{family} 580 ms, 2,900 in flight",
                            file,
                            family,
                            5_000,
                            many,
                            False,
                            True,
                        )
                finally:
                    server.terminate()
                    server.wait()
            with Delay(10):
                server = _listener()
                try:
                    if wanted("tcp"):
                        tcp_row(
                            f"TCP   IPv{family} 20 ms, idle 100/s", file, family, 100, few, False
                        )
                        tcp_row(f"TCP   IPv{family} 20 ms, busy loop", file, family, 200, few, True)
                finally:
                    server.terminate()
                    server.wait()


_LISTEN = """
import asyncio
async def main():
    server = await asyncio.start_server(lambda r, w: w.close(), None, %d, backlog=4096)
    await server.serve_forever()
asyncio.run(main())
"""


def _listener() -> "subprocess.Popen[bytes]":
    """Somebody who accepts connections at the peer."""
    return subprocess.Popen(inside(PEER, sys.executable, "-c", _LISTEN % TCP_PORT))


if __name__ == "__main__":
    main()
