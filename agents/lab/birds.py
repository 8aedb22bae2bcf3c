"""The BGP speakers of a lab: one BIRD 2 for each node that speaks, told what to do by its socket.

Configuration, control sockets and dumps are in the private folder of the lab: gone with it.
"""

import shutil
import socket
from pathlib import Path

from pathbudget.agents.lab.bgp_routes import speaks
from pathbudget.agents.lab.bird_config import bird_config
from pathbudget.agents.lab.fabric import Fabric
from pathbudget.agents.lab.helper_process import HelperProcess
from pathbudget.agents.lab.world import World
from pathbudget.probes.errors import LabError

ANSWER_SECONDS = 10.0
_FOLDERS = "/usr/sbin:/sbin:/usr/local/sbin:/usr/bin:/bin:/usr/local/bin"
MISSING = (
    "[bgp] in the world file needs BIRD 2, and there is no program called bird; "
    "on Debian: apt-get install bird2"
)


def bird_program() -> str:
    """Path of the program. Raises LabError where there is none."""
    found = shutil.which("bird", path=_FOLDERS) or shutil.which("bird")
    if found is None:
        raise LabError(MISSING)
    return found


class Birds:
    """All speakers, started at once. Raises LabError when one does not start."""

    def __init__(self, fabric: Fabric, folder: str) -> None:
        speakers = [name for name in fabric.world.nodes if speaks(fabric.world, name)]
        self._places = {name: f"{folder}/bird{number}" for number, name in enumerate(speakers)}
        self._birds: dict[str, HelperProcess] = {}
        self._said: dict[str, str] = {}
        program = bird_program()
        try:
            for name in speakers:
                self._start(fabric, program, name)
        except BaseException:
            self.close()
            raise

    def _start(self, fabric: Fabric, program: str, name: str) -> None:
        place = self._places[name]
        self._write(fabric.world, name)
        self._birds[name] = HelperProcess(
            f"the BGP speaker of {name}",
            [program, "-f", "-c", f"{place}.conf", "-s", f"{place}.ctl", "-P", f"{place}.pid"],
            fabric.spaces[name].descriptor,
        )

    def mrt_file(self, world: World, name: str) -> str:
        """Where the dump of a speaker is; empty: it writes none."""
        place = self._places.get(name)
        return f"{place}.mrt" if place and world.bgp and world.bgp.mrt else ""

    def follow(self, world: World) -> None:
        """Have the speakers do what `world` says from now on. Raises LabError."""
        for name in self._places:
            if self._write(world, name):
                self.ask(name, "configure")

    def _write(self, world: World, name: str) -> bool:
        """The file of one speaker; whether it says anything new."""
        text = bird_config(world, name, self.mrt_file(world, name))
        if text == self._said.get(name):
            return False
        Path(f"{self._places[name]}.conf").write_text(text)
        self._said[name] = text
        return True

    def ask(self, name: str, command: str) -> str:
        """What a speaker answers to a command of birdc. Raises LabError."""
        if name not in self._places:
            raise LabError(f"{name} speaks no BGP")
        try:
            return ask(f"{self._places[name]}.ctl", command)
        except OSError as error:
            self._birds[name].check()
            raise LabError(f"the BGP speaker of {name} does not answer: {error}") from None

    def check(self) -> None:
        """Raise LabError when one is dead."""
        for bird in self._birds.values():
            bird.check()

    def close(self) -> None:
        """End all of them."""
        for bird in self._birds.values():
            bird.stop()


def ask(path: str, command: str) -> str:
    """One command over a control socket; its answer without codes. Raises OSError, LabError."""
    with socket.socket(socket.AF_UNIX) as control:
        control.settimeout(ANSWER_SECONDS)
        control.connect(path)
        _answer(control)
        control.sendall(command.encode() + b"\n")
        return _answer(control)


def _answer(control: socket.socket) -> str:
    """Lines up to one whose code is followed by a blank: the last one of an answer."""
    octets = b""
    while True:
        more = control.recv(1 << 16)
        if not more:
            raise OSError("it closed the connection")
        octets += more
        lines = octets.decode(errors="replace").split("\n")
        if len(lines) > 1 and lines[-1] == "" and lines[-2][4:5] == " " and lines[-2][:4].isdigit():
            if lines[-2][0] in "89":
                raise LabError(f"BIRD says: {lines[-2][5:]}")
            return "\n".join(_text(line) for line in lines[:-1])


def _text(line: str) -> str:
    return line[5:] if line[:4].isdigit() else line[1:]
