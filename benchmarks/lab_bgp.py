"""Do real BGP speakers settle on what the lab computes? Random worlds, and random changes of them.

    .venv/bin/python benchmarks/lab_bgp.py [--worlds 20] [--changes 4] [--seed 1]

Each world has three to four carriers with two to four routers each, regions and sites with AS
numbers, parallel links, prepends at some links, preferences of regions and sites, with and without
the use of equal ways. A line for each: seconds to settle after the start, and for every change
there and back; or where the kernels forward otherwise than computed. Needs bird2; as root, or in a
user namespace of its own.
"""

import argparse
import os
import random
import sys
import time

from pathbudget.agents.lab.event import Event, EventKind
from pathbudget.agents.lab.events import applied
from pathbudget.agents.lab.running import Lab
from pathbudget.agents.lab.world import World
from pathbudget.agents.lab.world_file import parse_world
from pathbudget.probes.errors import ConfigError, LabError

SETTLE_SECONDS = 15.0


def random_world(drawn: random.Random) -> World:
    """A world that BGP can settle in; others are drawn again."""
    while True:
        try:
            return parse_world(_text(drawn))
        except ConfigError:
            continue


def _text(drawn: random.Random) -> str:
    lines = [f"seed = 1\necmp = {str(drawn.random() < 0.5).lower()}\n[bgp]\n"]
    routers: list[tuple[str, int]] = []
    for carrier in range(drawn.randint(3, 4)):
        own = [(f"r{carrier}-{n}", 65001 + carrier) for n in range(drawn.randint(2, 4))]
        for name, asn in own:
            lines.append(f'[[router]]\nname = "{name}"\nasn = {asn}\n')
        lines += [
            _link(drawn, own[at][0], own[drawn.randrange(at)][0]) for at in range(1, len(own))
        ]
        if len(own) > 2:
            lines.append(_link(drawn, own[0][0], own[-1][0]))
        routers += own
    for _ in range(drawn.randint(5, 9)):
        one, other = drawn.sample(routers, 2)
        if one[1] != other[1]:
            lines.append(_link(drawn, one[0], other[0], prepends=True))
    for kind, count, first in (("region", 3, 64601), ("site", 3, 64701)):
        for number in range(count):
            name = f"{kind}{number}"
            lines.append(f'[[{kind}]]\nname = "{name}"\nasn = {first + number}\n')
            lines[-1] += "responder = false\n" if kind == "site" else ""
            for router, _ in drawn.sample(routers, drawn.randint(1, 2)):
                lines.append(_link(drawn, name, router, preferences=True))
    return "".join(lines)


def _link(
    drawn: random.Random, one: str, other: str, *, prepends: bool = False, preferences: bool = False
) -> str:
    """Only regions and sites prefer: among routers it makes worlds with several stable states."""
    text = f'[[link]]\nbetween = ["{one}", "{other}"]\ndelay = "{drawn.randint(1, 4)}ms"\n'
    if preferences and drawn.random() < 0.3:
        text += f"forward = {{ local_preference = {drawn.choice((90, 110, 150))} }}\n"
    elif prepends and drawn.random() < 0.3:
        text += f"reverse = {{ prepend = {drawn.randint(1, 2)} }}\n"
    return text


def random_change(world: World, drawn: random.Random) -> World:
    """Another world with the same nodes and links."""
    link = drawn.randrange(len(world.links))
    ends = (world.links[link].a, world.links[link].b)
    event = drawn.choice(
        (
            Event(EventKind.LINK_DOWN, 0, links=(link,)),
            Event(EventKind.LINK_DOWN, 0, links=(link,), silently=True),
            Event(EventKind.SESSION_DOWN, 0, links=(link,)),
            Event(EventKind.PREFER, 0, links=(len(world.links) - 1,), node="site2", number=170),
            Event(EventKind.PREPEND, 0, links=(link,), node=ends[1], number=2),
            Event(EventKind.WITHDRAW, 0, node=drawn.choice(world.sites)),
            Event(EventKind.HIJACK, 0, node="r0-0", victim=drawn.choice(world.sites)),
        )
    )
    return applied(world, event)


def main() -> None:
    """Run them all."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--worlds", type=int, default=20)
    parser.add_argument("--changes", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if os.geteuid() != 0:
        from pathbudget.agents.lab.rootless import reexec_in_user_namespace

        reexec_in_user_namespace(sys.argv)
    wrong = 0
    for number in range(options.worlds):
        drawn = random.Random(f"{options.seed} {number}")
        wrong += not _try(number, random_world(drawn), drawn, options.changes)
    sys.stdout.write(f"{wrong} of {options.worlds} worlds otherwise than computed\n")
    sys.exit(bool(wrong))


def _try(number: int, world: World, drawn: random.Random, changes: int) -> bool:
    said = [f"world {number}: {len(world.nodes)} nodes, {len(world.links)} links;"]
    began = time.monotonic()
    try:
        with Lab(world) as lab:
            lab.converged(SETTLE_SECONDS)
            said.append(f"{time.monotonic() - began:.1f} s with start;")
            for _ in range(changes):
                try:
                    other = random_change(world, drawn)
                    _ = other.next_hops
                except LookupError:
                    said.append("never settles;")
                    continue
                lab.become(other)
                said.append(f"{lab.converged(SETTLE_SECONDS):.1f}")
                lab.become(world)
                said.append(f"{lab.converged(SETTLE_SECONDS):.1f};")
    except LabError as error:
        sys.stdout.write(" ".join([*said, f"WRONG: {error}"]) + "\n")
        return False
    sys.stdout.write(" ".join(said) + "\n")
    sys.stdout.flush()
    return True


if __name__ == "__main__":
    main()
