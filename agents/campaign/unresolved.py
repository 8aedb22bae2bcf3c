"""Names that led nowhere: nothing was sent then, so nothing was lost, and a person can look why."""

from collections.abc import Mapping, Sequence

from pathbudget.probes.record import FailureKind

WORDS = {
    FailureKind.NAME_NOT_FOUND: ("name not found", "check the spelling or /etc/resolv.conf"),
    FailureKind.NO_ADDRESS: ("no address in this family", "leave the choice of the family out"),
    FailureKind.RESOLVER: ("the resolver gave no answer", "check /etc/resolv.conf"),
}
MOST_NAMED = 10


def nothing_sent(host: str, kind: str) -> str:
    """Of a host to which nothing at all was sent."""
    why, remedy = _words(kind)
    return f"{host}: {why}, nothing was sent; {remedy}"


def not_sent(unresolved: Mapping[str, Mapping[str, int]]) -> Sequence[str]:
    """Of a run: how many probes had no address to go to, and whose."""
    lines: list[str] = []
    for host, kinds in sorted(unresolved.items()):
        for kind, count in kinds.items():
            why, remedy = _words(kind)
            lines.append(f"{count} not sent to {host}: {why}; {remedy}")
    if len(lines) > MOST_NAMED:
        lines[MOST_NAMED:] = [f"and {len(lines) - MOST_NAMED} more names"]
    return lines


def _words(kind: str) -> tuple[str, str]:
    return WORDS.get(FailureKind(kind), (kind.replace("_", " "), "see docs/campaign.md"))
