"""The table of probes: one line each, and what third parties register beside them."""

import functools
import importlib.metadata
import logging
from collections.abc import Mapping
from types import MappingProxyType

from pathbudget.probes.contract import Option, Options, OptionSpec, ProbeSpec
from pathbudget.probes.dns.probe import DNS
from pathbudget.probes.errors import Fault
from pathbudget.probes.http.probe import HTTP
from pathbudget.probes.icmp import ICMP
from pathbudget.probes.quic.probe import QUIC
from pathbudget.probes.stamp.probe import STAMP
from pathbudget.probes.stream.completion import COMPLETION
from pathbudget.probes.stream.probe import TOKEN_STREAM
from pathbudget.probes.tcp import TCP
from pathbudget.probes.tls.probe import TLS
from pathbudget.probes.trace.probe import TRACE
from pathbudget.probes.upload.probe import UPLOAD

ENTRY_POINT_GROUP = "pathbudget.probes"
_log = logging.getLogger(__name__)

BUILTIN: Mapping[str, ProbeSpec] = MappingProxyType(
    {
        "icmp": ICMP,
        "tcp": TCP,
        "tls": TLS,
        "stamp": STAMP,
        "quic": QUIC,
        "http": HTTP,
        "dns": DNS,
        "upload": UPLOAD,
        "token_stream": TOKEN_STREAM,
        "completion": COMPLETION,
        "trace": TRACE,
    }
)


@functools.cache
def probe_table() -> Mapping[str, ProbeSpec]:
    """Every probe by its name. A third party's cannot take the name of a built-in one."""
    table = dict(BUILTIN)
    for point in importlib.metadata.entry_points(group=ENTRY_POINT_GROUP):
        if point.name in table:
            _log.warning("probe %r of %s is not used: the name is taken", point.name, point.value)
            continue
        spec = _load(point)
        if spec is not None:
            table[point.name] = spec
    return MappingProxyType(table)


def check_options(
    spec: ProbeSpec, raw: Mapping[str, object], file: str, where: str
) -> tuple[Options, list[Fault]]:
    """The options of one probe with the defaults filled in, and every fault in what was given.

    `raw` is the table as TOML gives it; `file` and `where` go into the faults. What the probe
    itself has to say of the options together (`ProbeSpec.check`) is among them.
    """
    options: dict[str, Option] = {name: known.default for name, known in spec.options.items()}
    faults: list[Fault] = []
    for name, value in raw.items():
        place = f"{where}.{name}" if where else name
        known = spec.options.get(name)
        problem = _unknown(spec, name) if known is None else _wrong(known, value)
        if problem is not None:
            faults.append(Fault(file, place, *problem))
        elif isinstance(value, str | int | float | bool):
            options[name] = value
    known_to_be_wrong = {fault.where for fault in faults}
    for fault in spec.check(options):
        place = f"{where}.{fault.where}".strip(".")
        if place not in known_to_be_wrong:
            faults.append(Fault(file, place, fault.problem, fault.expected))
    return options, faults


def _load(point: importlib.metadata.EntryPoint) -> ProbeSpec | None:
    """Somebody else's code: whatever it does, the other probes go on."""
    try:
        spec: object = point.load()
    except Exception:  # noqa: BLE001
        _log.warning("probe %r of %s cannot be loaded", point.name, point.value, exc_info=True)
        return None
    if isinstance(spec, ProbeSpec):
        return spec
    _log.warning("probe %r of %s is no ProbeSpec", point.name, point.value)
    return None


def _unknown(spec: ProbeSpec, name: str) -> tuple[str, str]:
    known = ", ".join(sorted(spec.options))
    expected = f"one of {known}" if known else "no options"
    return f"probe {spec.name} has no option {name!r}", expected


def _wrong(known: OptionSpec, value: object) -> tuple[str, str] | None:
    expected = _expectation(known)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    fits = is_number if known.kind is float else type(value) is known.kind
    if not fits:
        return f"{value!r} is {_kind_name(type(value))}", expected
    if known.choices and value not in known.choices:
        return f"{value!r} is none of the choices", expected
    if isinstance(value, int | float) and not _in_range(known, value):
        return f"{value!r} is out of range", expected
    return None


def _in_range(known: OptionSpec, value: float) -> bool:
    above = known.minimum is None or value >= known.minimum
    return above and (known.maximum is None or value <= known.maximum)


def _expectation(known: OptionSpec) -> str:
    if known.choices:
        return "one of " + ", ".join(known.choices)
    text = _kind_name(known.kind)
    if known.minimum is not None and known.maximum is not None:
        return f"{text} from {in_full(known.minimum)} to {in_full(known.maximum)}"
    if known.minimum is not None:
        return f"{text}, {in_full(known.minimum)} or more"
    if known.maximum is not None:
        return f"{text}, {in_full(known.maximum)} or less"
    return text


def in_full(number: float) -> str:
    """A bound as a person writes it: 16777216 and 0.000001, never 1.67772e+07."""
    return str(int(number)) if number == int(number) else f"{number:.9f}".rstrip("0")


def _kind_name(kind: type) -> str:
    names = {str: "a string", int: "a whole number", float: "a number", bool: "true or false"}
    return names.get(kind, f"a {kind.__name__}")
