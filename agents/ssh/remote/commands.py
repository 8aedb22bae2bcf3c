"""What the bundle does on a host: ``about``, ``attach``, ``work``. The first word says which."""

import os
import sys
from pathlib import Path

import msgspec

from pathbudget.agents.campaign.messages import encode
from pathbudget.agents.ssh.remote.run_folder import (
    RunFolder,
    forget_unstarted,
    runs_of,
    this_bundle,
)
from pathbudget.agents.ssh.remote.speech import About, Attach, Gone, Trouble, to_host
from pathbudget.probes.errors import PathbudgetError


def main(words: list[str]) -> None:
    """Run from the archive's ``__main__``."""
    match words:
        case ["about", runs, prefix]:
            about(Path(runs), prefix)
        case ["attach", runs]:
            attach(Path(runs))
        case ["work", folder]:
            from pathbudget.agents.ssh.remote.working import work

            work(Path(folder))
        case _:
            sys.exit("about RUNS PREFIX, attach RUNS, or work FOLDER")


def about(runs: Path, prefix: str) -> None:
    """Print an `About`."""
    from pathbudget.agents.version import software_name
    from pathbudget.probes.capabilities import report

    runs.mkdir(parents=True, exist_ok=True, mode=0o700)
    forget_unstarted(runs)
    room = os.statvfs(runs)
    found = runs_of(runs, prefix)
    said = About(
        software=software_name(),
        abilities={one.name: one.available for one in report()},
        free_bytes=room.f_bavail * room.f_frsize,
        runs=tuple(run.path.name for run in found),
        alive=tuple(run.path.name for run in found if run.alive),
    )
    sys.stdout.write(msgspec.json.encode(said).decode() + "\n")


def attach(runs: Path) -> None:
    """Tell of a run, and begin it where it is wanted."""
    from pathbudget.agents.ssh.remote.attaching import Attachment

    line, rest = _first_line()
    wish = to_host.decode(line)
    if not isinstance(wish, Attach) or not wish.run or "/" in wish.run or wish.run[0] == ".":
        sys.exit("the first line must name a run")
    run = RunFolder(runs / wish.run)
    try:
        if not run.exists:
            if wish.order is None:
                os.write(1, encode(Gone()))
                return
            run.launch(wish.order, this_bundle("work"))
    except PathbudgetError as error:
        os.write(1, encode(Trouble(str(error))))
        return
    try:
        Attachment(run, wish.offset, heard=rest).run()
    except BrokenPipeError:
        return


def _first_line() -> tuple[bytes, bytes]:
    """And what came behind it."""
    heard = b""
    while b"\n" not in heard:
        more = os.read(0, 1 << 16)
        if not more:
            sys.exit("nobody said what to tell of")
        heard += more
    line, _, rest = heard.partition(b"\n")
    return line, rest
