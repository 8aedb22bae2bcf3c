"""Whose an address is, from the prefix table that a user names (docs/routes.md has the formats)."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from pathbudget.agents.trace.known import Naming, Whose
from pathbudget.sites.prefixes import Origins, load_prefix_table


def naming(file: Path) -> Naming:
    """A table as a function from addresses to what is shown of them. Raises ConfigError."""
    return naming_of(load_prefix_table(file))


def naming_of(origins: Origins) -> Naming:
    """The same of a table that is loaded."""

    def name(addresses: Sequence[str]) -> Mapping[str, Whose]:
        found = {one: origins.look_up(one) for one in addresses}
        return {
            one: Whose("_".join(f"AS{asn}" for asn in origin.asns), origin.name)
            for one, origin in found.items()
            if origin is not None
        }

    return name
