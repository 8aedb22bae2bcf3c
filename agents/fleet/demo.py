"""A whole fleet on one machine, to look at: two regions, two sites, each step as it is in earnest.

The sites are responders on loopback that answer as late as the distance wants it.

Everything is under FOLDER/demo, and can be read, changed and copied.
"""

import asyncio
import contextlib
import shutil
import time
from collections.abc import Callable, Generator, Sequence
from pathlib import Path

from pathbudget.agents.bus.subjects import OPERATOR
from pathbudget.agents.demo.places import place_of
from pathbudget.agents.fleet.children import Child
from pathbudget.agents.fleet.enrolment import enrol
from pathbudget.agents.fleet.files import PUBLIC, fault, write
from pathbudget.agents.fleet.folder import Folder
from pathbudget.agents.fleet.invitation import invite
from pathbudget.agents.fleet.plan_bucket import looked_into, push
from pathbudget.agents.fleet.serving import own_command
from pathbudget.agents.loopback.geography import PathModel
from pathbudget.agents.loopback.world import LoopbackWorld
from pathbudget.agents.plans.from_campaign import agent_plans
from pathbudget.agents.plans.keys import generate, read_private
from pathbudget.agents.plans.signing import sign
from pathbudget.probes.table import probe_table

REGIONS = ("dallas", "new-york")
SITES = {"infomart": "dallas-1950-stemmons", "ashburn": "ashburn-44060-digital-loudoun"}
SEED = 7
HOUR_NS = 3_600_000_000_000
LIFETIME_NS = 30 * 24 * HOUR_NS
ROLL_NS = 10_000_000_000
HEADER = "# Written anew by every `pathbudget fleet demo`: copy it to start from it.\n"
PROBES = """[[probe]]
kind = "tls"
label = "tls-cold"
mode = "cold"
ca_file = "files/ca.pem"
interval = "1s"
timeout = "2s"
"""


class Demo:
    """The files of a demo in a fleet's folder, and the programs that measure."""

    def __init__(self, folder: Folder, world: LoopbackWorld) -> None:
        self.folder = folder
        self.path = folder.path / "demo"
        self._world = world

    def prepare(self) -> None:
        """Write catalogue, campaign, policy, and the operator's keys. Raises ConfigError.

        (In earnest the private key is made where the operator sits, and never comes here.)
        """
        try:
            (self.path / "files").mkdir(mode=0o700, parents=True, exist_ok=True)
            shutil.copyfile(self._world.authority, self.path / "files" / "ca.pem")
        except OSError as error:
            raise fault(self.path, f"cannot be written: {error.strerror}", "a folder") from None
        write(self.path / "catalogue.toml", self._catalogue().encode(), PUBLIC)
        write(self.path / "campaign.toml", self._campaign().encode(), PUBLIC)
        policy = f'{HEADER}allowed_networks = ["127.0.0.0/8"]\nfiles = "files"\n'
        write(self.path / "policy.toml", policy.encode(), PUBLIC)
        if not (self.path / "operator").exists():
            generate(self.path / "operator", self.path / "operator.pub")
        self.folder.trust(self.path / "operator.pub")

    def agents(self, say: Callable[[str], None]) -> Sequence[Child]:
        """Enrol, sign and push; then the agents, to be started. Needs the server."""
        for name in REGIONS:
            if not self.login(name).exists():
                enrol(invite(self.folder, name, HOUR_NS, again=True), self.login(name), say)
        self._push(say)
        return [self._agent(name) for name in REGIONS]

    def login(self, agent: str) -> Path:
        """Where the login of an agent is."""
        return self.path / f"{agent}.login.toml"

    def _push(self, say: Callable[[str], None]) -> None:
        plans = agent_plans(
            self.path / "campaign.toml",
            probe_table(),
            issued_unix_ns=time.time_ns(),
            lifetime_ns=LIFETIME_NS,
            roll_ns=ROLL_NS,
        )
        key = read_private(self.path / "operator")
        signed = [looked_into(sign(plan, key)) for plan in plans.values()]
        asyncio.run(push(self.folder.login(OPERATOR), signed, say))

    def _agent(self, name: str) -> Child:
        words = ["agent", "--login", str(self.login(name))]
        words += ["--policy", str(self.path / "policy.toml")]
        words += ["--state", str(self.path / f"{name}.state")]
        return own_command(f"agent {name}", words, self.path / f"{name}.log")

    def _catalogue(self) -> str:
        lines = [HEADER]
        for name in REGIONS:
            lines += ["[[region]]", f'name = "{name}"', f'place = "{name}"', ""]
        for name, place in SITES.items():
            target = self._world.target(name)
            lines += ["[[site]]", f'name = "{name}"', f'place = "{place}"', "[[site.target]]"]
            lines += [f'host = "{target.host}"', f"port = {target.port}", ""]
        return "\n".join(lines)

    def _campaign(self) -> str:
        lines = [HEADER, 'name = "fleet-demo"', 'catalogue = "catalogue.toml"']
        lines += ['duration = "1m"  # of `pathbudget run`; agents go on', f"seed = {SEED}", ""]
        for name in REGIONS:
            lines += ["[[vantage]]", f'name = "{name}"', f'region = "{name}"']
            lines += [f'source_ipv4 = "{self._world.source_address(name)}"', ""]
        return "\n".join(lines) + "\n" + PROBES


@contextlib.contextmanager
def demo(folder: Folder) -> Generator[Demo]:
    """The sites answer while the block runs. Raises LabError or ConfigError."""
    regions = [place_of(name) for name in REGIONS]
    sites = [(name, *place_of(place)[1:]) for name, place in SITES.items()]
    with LoopbackWorld(regions, sites, model=PathModel(access_ms=8.0), seed=SEED) as world:
        made = Demo(folder, world)
        made.prepare()
        yield made
