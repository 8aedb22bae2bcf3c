"""The options of the probe in one ``[[probe]]``: what a campaign file may say more simply, and what
has to be looked at before anything starts, files above all.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

from pathbudget.agents.dscp import FORM, parse_dscp
from pathbudget.agents.lab.session import current
from pathbudget.probes.contract import Option, Options, ProbeSpec
from pathbudget.probes.errors import ConfigError, Fault
from pathbudget.probes.stamp.probe import key_of
from pathbudget.probes.table import check_options
from pathbudget.probes.tls.client import client_context
from pathbudget.sites.entry import Entry, show

LAB_CA = "lab:ca"
"""Value of a file option that means: the certificate authority of the lab that runs us."""
FILES = ("key_file", "ca_file")
"""Options that name a file; it is looked for beside the campaign file."""


def read_options(entry: Entry, spec: ProbeSpec, own_keys: Iterable[str]) -> dict[str, Option]:
    """Everything in the table that is none of `own_keys`, with the defaults of the probe."""
    raw = {
        key: _simplified(entry, key, value)
        for key, value in entry.values.items()
        if key not in own_keys
    }
    if not entry.sound:
        return {}
    options, faults = check_options(spec, raw, entry.file, entry.where(""))
    entry.faults.extend(faults)
    if not faults:
        _look_into_files(entry, options)
    return dict(options)


def _simplified(entry: Entry, key: str, value: object) -> object:
    if not isinstance(value, str):
        return value
    if not value.isprintable():
        odd = next(letter for letter in value if not letter.isprintable())
        problem = f"{show(value)} holds the invisible character U+{ord(odd):04X}"
        entry.fault(key, problem, "visible text on one line")
    elif key == "dscp":
        return _class(entry, value)
    elif key in FILES and value:
        return _file(entry, value)
    return value


def _class(entry: Entry, value: str) -> object:
    try:
        return parse_dscp(value)
    except ValueError:
        entry.fault("dscp", f"{show(value)} is no traffic class", FORM)
        return value


def _file(entry: Entry, value: str) -> str:
    lab = current()
    if value == LAB_CA and lab is not None:
        return lab.ca_file
    return str(Path(entry.file).parent / value)


def _look_into_files(entry: Entry, options: Options) -> None:
    """Have what is wrong with a file told as a fault of the campaign, not by every worker."""
    if options.get("key_file") or options.get("key_id"):
        _noting(entry, "key_file", lambda: key_of(options))
    authorities = options.get("ca_file")
    if authorities and entry.values.get("ca_file") != LAB_CA:
        _noting(entry, "ca_file", lambda: _check_authorities(Path(str(authorities))))


def _noting(entry: Entry, key: str, look: Callable[[], object]) -> None:
    try:
        look()
    except ConfigError as error:
        for fault in error.faults:
            if fault.file.startswith("probe "):  # not the file: what else is said of it
                entry.fault(fault.where or key, fault.problem, fault.expected)
            else:
                place = f"{fault.file}, {fault.where}" if fault.where else fault.file
                entry.fault(key, f"{place}: {fault.problem}", fault.expected)


def _check_authorities(path: Path) -> None:
    if path.exists() and not path.is_file():  # a device has no end
        expected = "a readable file of certificates in PEM form"
        raise ConfigError([Fault(str(path), "", "is no regular file", expected)])
    client_context(verify=True, ca_file=str(path), alpn="")
