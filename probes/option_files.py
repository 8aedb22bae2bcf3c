"""Files that options name: what is wrong with one is told of the option.

A file that cannot be used has faults with its own name (``Fault.file``), from whoever reads it; a
person who wrote an option wants to know which one.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from pathbudget.probes.contract import Options
from pathbudget.probes.errors import ConfigError, Fault

T = TypeVar("T")
REMEDY = "pip install 'pathbudget[request]'"


def no_regular_file(options: Options, option: str, expected: str, probe: str) -> Fault | None:
    """The fault of an option that names something which cannot be read to its end, or not at all:
    a missing file, a folder, a device. None for a file, and where none is named.
    """
    name = str(options.get(option) or "")
    if not name:
        return None
    try:
        if not Path(name).exists():
            return Fault(probe, option, f"{name}: no such file or directory", expected)
        if not Path(name).is_file():  # a device has no end, a pipe can be read once
            return Fault(probe, option, f"{name}: is no regular file", expected)
    except (OSError, ValueError) as error:
        return Fault(probe, option, f"{name}: {error}", expected)
    return None


def told_of(option: str, error: ConfigError, probe: str) -> list[Fault]:
    """The faults of an error as those of an option; those of the probe itself name theirs."""
    found: list[Fault] = []
    for fault in error.faults:
        if fault.file == probe:
            found.append(
                fault if fault.where else Fault(probe, option, fault.problem, fault.expected)
            )
        else:
            place = f"{fault.file}, {fault.where}" if fault.where else fault.file
            found.append(Fault(probe, option, f"{place}: {fault.problem}", fault.expected))
    return found


def noting(faults: list[Fault], option: str, read: Callable[[], T], probe: str) -> T | None:
    """What `read` returns; None where it raises ConfigError, whose faults are noted as those of the
    option. Faults for want of a library are not: the opening tells of them.
    """
    try:
        return read()
    except ConfigError as error:
        faults += [one for one in told_of(option, error, probe) if one.expected != REMEDY]
    except ImportError:
        pass
    return None
