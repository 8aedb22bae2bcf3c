"""Every fault of a script at once, each with its place: the fields of the structs are the rules."""

import math
from collections.abc import Mapping

import msgspec
from msgspec import inspect

from pathbudget.probes.errors import Fault
from pathbudget.probes.table import in_full
from pathbudget.sites.entry import did_you_mean, show


def faults_in(
    values: Mapping[str, object], kind: type[msgspec.Struct], file: str, where: str = ""
) -> list[Fault]:
    """What keeps `values` from being a `kind`."""
    fields = {field.name: field.type for field in msgspec.structs.fields(kind)}
    faults: list[Fault] = []
    for key, value in values.items():
        place = f"{where}.{key}" if where else key
        if key not in fields:
            expected = did_you_mean(key, fields)
            faults.append(Fault(file, place, f"unknown key {show(key)}", expected))
        else:
            faults += _faults_of(value, fields[key], file, place)
    return faults or _as_a_whole(values, kind, file, where)


def _faults_of(value: object, field: object, file: str, place: str) -> list[Fault]:
    rule = inspect.type_info(field)
    if isinstance(rule, inspect.StructType):
        if isinstance(value, dict):
            return faults_in(value, rule.cls, file, place)
        names = ", ".join(one.name for one in rule.fields)
        return [Fault(file, place, f"{show(value)} is no table", f"a table with some of {names}")]
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return [Fault(file, place, f"{show(value)} is no value", _expected(rule))]
    try:
        msgspec.convert(value, field)
    except msgspec.ValidationError:
        return [Fault(file, place, f"{show(value)} does not fit", _expected(rule))]
    return []


def _as_a_whole(
    values: Mapping[str, object], kind: type[msgspec.Struct], file: str, where: str
) -> list[Fault]:
    """What the struct itself has to say of values that are right one by one."""
    try:
        msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        problem, _, expected = str(error).partition("; expected ")
        return [
            Fault(file, where, problem.partition(" - at `")[0], expected.partition(" - at ")[0])
        ]
    return []


def _expected(rule: inspect.Type) -> str:
    if isinstance(rule, inspect.UnionType):  # none of them may be null in a file
        rule = next(one for one in rule.types if not isinstance(one, inspect.NoneType))
    if isinstance(rule, inspect.LiteralType):
        return "one of " + ", ".join(map(str, rule.values))
    if isinstance(rule, inspect.BoolType):
        return "true or false"
    if isinstance(rule, inspect.IntType | inspect.FloatType):
        name = "a whole number" if isinstance(rule, inspect.IntType) else "a number"
        if rule.ge is None or rule.le is None:
            return name
        return f"{name} from {in_full(rule.ge)} to {in_full(rule.le)}"
    return "text in quotation marks"
