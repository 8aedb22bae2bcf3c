"""Which addresses are one router: sets of aliases out of a file.

One router a line, its addresses separated by blanks, and a name before a colon if it has one:

    core1.fra: 192.0.2.1 192.0.2.5
    198.51.100.1 198.51.100.9

The files of CAIDA's ITDK (``node N1:  192.0.2.1 192.0.2.5``) are of this form too. Nothing is
inferred from traces: that two addresses answer at the same hop, or are never seen together, is no
proof that they are one router, and a wrong alias hides a change of the path for ever.
"""

import ipaddress
from pathlib import Path

from pathbudget.probes.errors import ConfigError, Fault

EXPECTED = "addresses of one router in a line, with a name before a colon or without"


def read_aliases(path: Path) -> dict[str, str]:
    """Router by address. Raises ConfigError with every line that cannot be read."""
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no text"
        raise ConfigError([Fault(str(path), "", str(reason), "a readable file")]) from error
    routers: dict[str, str] = {}
    faults: list[Fault] = []
    for number, line in enumerate(lines, 1):
        text = line.partition("#")[0].strip()
        problem = _take(text, routers) if text else ""
        if problem:
            faults.append(Fault(str(path), f"line {number}", problem, EXPECTED))
    if not routers and not faults:
        faults.append(Fault(str(path), "", "no router in it", EXPECTED))
    if faults:
        raise ConfigError(faults)
    return routers


def _take(text: str, routers: dict[str, str]) -> str:
    """Add one line; what is wrong with it."""
    name, colon, rest = text.partition(": ")
    words = (rest if colon else text.removesuffix(":")).split()
    addresses: list[str] = []
    for word in words:
        try:
            addresses.append(str(ipaddress.ip_address(word)))
        except ValueError:
            return f"{word[:40]!r} is no address"
    if not addresses:
        return "no address"
    router = name.strip() if colon else addresses[0]
    for address in addresses:
        if routers.setdefault(address, router) != router:
            return f"{address} is {routers[address]} already"
    return ""
