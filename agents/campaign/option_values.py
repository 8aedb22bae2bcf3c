"""The options of the probe in one ``[[probe]]``: what a campaign file may say more simply."""

from collections.abc import Iterable
from pathlib import Path

from pathbudget.agents.dscp import FORM, parse_dscp
from pathbudget.agents.lab.session import current
from pathbudget.probes.contract import Option, ProbeSpec
from pathbudget.probes.table import check_options
from pathbudget.sites.entry import Entry, show

LAB_CA = "lab:ca"
"""Value of a file option that means: the certificate authority of the lab that runs us."""


def read_options(entry: Entry, spec: ProbeSpec, own_keys: Iterable[str]) -> dict[str, Option]:
    """Everything in the table that is none of `own_keys`, with the defaults of the probe."""
    own = frozenset(own_keys)
    before = len(entry.faults)
    raw = {
        key: _simplified(entry, spec, key, value)
        for key, value in entry.values.items()
        if key not in own
    }
    wrong = {fault.where for fault in entry.faults[before:]}
    sound = {key: value for key, value in raw.items() if entry.where(key) not in wrong}
    options, faults = check_options(spec, sound, entry.file, entry.where(""))
    if current() is not None:  # the lab answers for its own files
        wrong |= {entry.where(key) for key, value in entry.values.items() if value == LAB_CA}
    entry.faults.extend(fault for fault in faults if fault.where not in wrong)
    return dict(options)


def _simplified(entry: Entry, spec: ProbeSpec, key: str, value: object) -> object:
    if not isinstance(value, str):
        return value
    if not value.isprintable():
        odd = next(letter for letter in value if not letter.isprintable())
        problem = f"{show(value)} holds the invisible character U+{ord(odd):04X}"
        entry.fault(key, problem, "visible text on one line")
    elif key == "dscp":
        return _class(entry, value)
    elif value and key in spec.options and spec.options[key].file:
        return _file(entry, value)
    return value


def _class(entry: Entry, value: str) -> object:
    try:
        return parse_dscp(value)
    except ValueError:
        entry.fault("dscp", f"{show(value)} is no traffic class", FORM)
        return value


def _file(entry: Entry, value: str) -> str:
    """It is looked for beside the campaign file."""
    lab = current()
    if value == LAB_CA and lab is not None:
        return lab.ca_file
    return str(Path(entry.file).parent / value)
