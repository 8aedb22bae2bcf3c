"""Fuzz targets of the lab: frames that pass peculiar routers, world files. See tests/fuzzing.py."""

import contextlib

from pathbudget.agents.lab.direction import flow_key
from pathbudget.agents.lab.hop import Balancing, Hop, Label, Translation
from pathbudget.agents.lab.hop_work import HopSetup, HopWork, Interface
from pathbudget.agents.lab.world_file import parse_world
from pathbudget.probes.errors import ConfigError

OWN = ("10.32.0.1", "fd70::1")
INSIDE = ("10.16.0.1", "fd70:1::1")
HOP = Hop(
    balancing=Balancing.OCTETS,
    labels=(Label(24015), Label(16008)),
    interface=True,
    translation=Translation.RESTORE,
)
SETUP = HopSetup(
    "router",
    HOP,
    "1 router",
    OWN,
    {0: Interface(1000, "eth", *OWN, 1500)},
    INSIDE,
    {"0a3000": (1, 3)},
)
ROUTER, REGION = bytes([10, 32, 0, 1]), bytes([10, 16, 0, 1])
ROUTER6 = bytes.fromhex("fd70" + "00" * 13 + "01")
HEADS = (
    bytes(12) + b"\x08\x00\x45\x00" + bytes(10) + REGION + bytes([10, 48, 0, 1]),
    bytes(12) + b"\x08\x00\x45\x00" + bytes(7) + b"\x01" + bytes(2) + REGION + ROUTER,
    bytes(12) + b"\x86\xdd\x60" + bytes(5) + b"\x3a\x40" + ROUTER6 * 2,
)
"""A packet of the inside, an ICMP message to the router, and one of its own over IPv6."""


def fuzz_one_frame(data: bytes) -> None:
    """Any frame: nothing raises, translation keeps lengths, only errors get longer."""
    worker = HopWork(SETUP)
    for frame in (
        bytes(12) + data.ljust(60, b"\0"),
        *(head + data.ljust(24, b"\0") for head in HEADS),
    ):
        flow_key(frame)
        worker.way(frame)
        left = worker.leaving(frame, 0)
        assert left is not None
        entered = worker.entering(frame)
        assert len(entered) == len(frame)
        assert entered[:14] == frame[:14]


def fuzz_one_world(data: bytes) -> None:
    """Any text as a world file: a world, or faults."""
    with contextlib.suppress(ConfigError):
        parse_world(data.decode(errors="replace"))
