"""Coverage-guided fuzzing of everything that reads bytes from outside, by hand: ``make fuzz``.

A target is a function ``fuzz_one...(data: bytes) -> None`` in a ``tests/*/fuzz_targets.py``. It
holds an invariant and raises when that is broken. Each runs in a process of its own, for
``--seconds``; what made one fail is kept in ``--keep`` and printed. CI gives every target a bounded
number of inputs instead (tests/repository/test_fuzz_targets.py).
"""

import argparse
import importlib
import importlib.util
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parent
sys.path.insert(0, str(TESTS.parent))
"""Targets of one folder use what tests of others have."""

Target = Callable[[bytes], None]


def targets() -> dict[str, Target]:
    """Every target by its name: folder and function."""
    return dict(_targets())


def _targets() -> Iterator[tuple[str, Target]]:
    for file in sorted(TESTS.glob("*/fuzz_targets.py")):
        spec = importlib.util.spec_from_file_location(f"fuzz_{file.parent.name}", file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for name, function in vars(module).items():
            if name.startswith("fuzz_one"):
                word = name.removeprefix("fuzz_one").strip("_")
                yield ".".join(filter(None, (file.parent.name, word))), function


def fuzz(name: str, seconds: int, keep: Path) -> None:
    """Fuzz one target in this process; ends the process."""
    atheris: Any = importlib.import_module("atheris")

    with atheris.instrument_imports(include=["pathbudget"]):
        target = targets()[name]
    corpus = keep / name
    corpus.mkdir(parents=True, exist_ok=True)
    options = [f"-max_total_time={seconds}", f"-artifact_prefix={corpus}/failed-", "-max_len=2048"]
    atheris.Setup([sys.argv[0], str(corpus), *options], target)
    atheris.Fuzz()


def main() -> int:
    """Fuzz what was asked for, two targets at a time; 1 when any of them failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="targets; all of them when none is named")
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--keep", type=Path, default=Path("build/fuzz"))
    parser.add_argument("--at-once", type=int, default=2)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        fuzz(asked.one, asked.seconds, asked.keep)
        return 0
    waiting = list(asked.names or targets())
    running: dict[str, subprocess.Popen[str]] = {}
    failed: list[str] = []
    while waiting or running:
        while waiting and len(running) < asked.at_once:
            name = waiting.pop(0)
            running[name] = _start(name, asked.seconds, asked.keep)
        name, process = next(iter(running.items()))
        said, _ = process.communicate()
        del running[name]
        runs = [line for line in said.splitlines() if line.startswith("Done ")]
        print(f"{name}: {runs[-1] if runs and not process.returncode else said[-3000:]}")
        if process.returncode:
            failed.append(name)
    print(f"failed: {', '.join(failed)}" if failed else "every target is clean")
    return 1 if failed else 0


def _start(name: str, seconds: int, keep: Path) -> "subprocess.Popen[str]":
    command = [sys.executable, __file__, "--one", name, "--seconds", str(seconds)]
    command += ["--keep", str(keep)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


if __name__ == "__main__":
    sys.exit(main())
