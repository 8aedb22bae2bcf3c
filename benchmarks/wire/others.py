"""The round trips that other tools report, in the order of their requests, in nanoseconds.

Each runs inside the prober's namespace. Debian packages: iputils-ping fping scamper mtr-tiny;
from the package index: icmplib, scapy (by hand, they are no dependencies of ours).
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable

from path import PROBER, inside

MS = 1e6
GAP = 0.01


def _run(*command: str) -> str:
    done = subprocess.run(
        inside(PROBER, *command), capture_output=True, text=True, check=False, timeout=300
    )
    return done.stdout + done.stderr


def ping(address: str, count: int) -> list[float]:
    said = _run("ping", "-n", "-i", str(GAP), "-c", str(count), address)
    return [float(found) * MS for found in re.findall(r"time=([\d.]+) ms", said)]


def fping(address: str, count: int) -> list[float]:
    family = ["-6"] if ":" in address else ["-4"]
    gap = str(int(GAP * 1e3))
    said = _run("fping", *family, "-q", "-C", str(count), "-p", gap, address)
    return [float(one) * MS for one in said.rpartition(" : ")[2].split() if one != "-"]


def scamper(address: str, count: int) -> list[float]:
    said = _run(
        "scamper", "-O", "json", "-c", f"ping -c {count} -i {GAP}", "-p", "1000", "-i", address
    )
    for line in said.splitlines():
        record = json.loads(line) if line.startswith("{") else {}
        if record.get("type") == "ping":
            return [one["rtt"] * MS for one in record["responses"]]
    return []


def mtr(address: str, count: int) -> list[float]:
    said = _run("mtr", "--raw", "-n", "-c", str(count), "-i", str(GAP), address)
    return [float(found) * 1e3 for found in re.findall(r"^p \d+ (\d+)", said, re.MULTILINE)]


_ICMPLIB = """
import sys, icmplib
host = icmplib.ping(sys.argv[1], count=int(sys.argv[2]), interval=float(sys.argv[3]))
print(*host.rtts)
"""
_SCAPY = """
import logging, sys, time
logging.getLogger("scapy").setLevel(logging.ERROR)
from scapy.layers.inet import ICMP, IP
from scapy.layers.inet6 import ICMPv6EchoRequest, IPv6
from scapy.sendrecv import sr
address, count = sys.argv[1], int(sys.argv[2])
six = ":" in address
for seq in range(count):
    echo = IPv6(dst=address) / ICMPv6EchoRequest(id=77, seq=seq) if six else (
        IP(dst=address) / ICMP(id=77, seq=seq))
    answered, _ = sr(echo, timeout=1, verbose=False)
    for sent, received in answered:
        print((float(received.time) - float(sent.sent_time)) * 1e3, end=" ")
"""


def icmplib(address: str, count: int) -> list[float]:
    said = _run(sys.executable, "-c", _ICMPLIB, address, str(count), str(GAP))
    return [float(one) * MS for one in said.split()]


def scapy(address: str, count: int) -> list[float]:
    said = _run(sys.executable, "-c", _SCAPY, address, str(min(count, 100)))
    return [float(one) * MS for one in re.findall(r"[\d.]+(?:e-\d+)?", said)]


TOOLS: dict[str, Callable[[str, int], list[float]]] = {
    "ping": ping,
    "fping": fping,
    "scamper": scamper,
    "mtr": mtr,
    "icmplib": icmplib,
    "scapy sr": scapy,
}
