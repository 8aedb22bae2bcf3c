"""docs/dependencies.md against pyproject.toml, what is installed, and what is imported."""

import ast
import importlib.metadata
import re
import sys
from pathlib import Path
from typing import Any

FAMILIES = ("Apache", "BSD", "GPL", "ISC", "MIT", "MPL")
PACKAGES = {
    "dns": "dnspython",
    "OpenSSL": "pyopenssl",
    "google": "protobuf",
    "nacl": "pynacl",
    "nats": "nats-py",
    "prometheus_client": "prometheus-client",
    "opentelemetry": "opentelemetry-proto",
    "service_identity": "service-identity",
}
"""Of modules that are called otherwise than what is installed."""


def name_of(requirement: str) -> str:
    return re.split(r"[<>=~!\[; ]", requirement)[0].lower()


def names(requirements: list[str | dict[str, str]]) -> set[str]:
    return {name_of(one) for one in requirements if isinstance(one, str)}


def tables(root: Path) -> dict[str, list[list[str]]]:
    """Rows of the table in each section of the page."""
    found: dict[str, list[list[str]]] = {}
    for section in (root / "docs/dependencies.md").read_text().split("\n## ")[1:]:
        rows = [line.strip("|").split("|") for line in section.splitlines() if line[:1] == "|"]
        found[section.partition("\n")[0]] = [[cell.strip() for cell in row] for row in rows[2:]]
    return found


def extras(project: dict[str, Any]) -> dict[str, set[str]]:
    optional = project["project"]["optional-dependencies"]
    return {extra: names(listed) for extra, listed in optional.items() if extra != "all"}


def imported(files: list[Path]) -> set[str]:
    """First words of everything that product modules import, at the top or inside functions."""
    words: set[str] = set()
    for path in files:
        if path.suffix != ".py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                words |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                words.add((node.module or "").partition(".")[0])
    return words - set(sys.stdlib_module_names) - {"pathbudget"}


def test_the_page_lists_what_pyproject_lists(root: Path, project: dict[str, Any]) -> None:
    page = {title: {row[0] for row in rows} for title, rows in tables(root).items()}
    assert page == {
        "What an agent installs": names(project["project"]["dependencies"]),
        "Extras": set().union(*extras(project).values()),
        "Tests": names(project["dependency-groups"]["test"]),
        "Checks": names(project["dependency-groups"]["check"]),
        "Fuzzing, by hand": names(project["dependency-groups"]["fuzz"]),
    }


def test_the_page_names_the_extras_of_each_package(root: Path, project: dict[str, Any]) -> None:
    stated = {row[0]: set(row[1].split(", ")) for row in tables(root)["Extras"]}
    assert stated == {
        package: {extra for extra, listed in extras(project).items() if package in listed}
        for package in stated
    }


def test_every_row_gives_reason_licence_and_way_out(root: Path) -> None:
    for rows in tables(root).values():
        for row in rows:
            assert all(row), row


def test_the_stated_licences_are_those_of_the_installed_packages(root: Path) -> None:
    installed = tables(root)
    del installed["Fuzzing, by hand"]  # not installed where tests run
    for rows in installed.values():
        for row in rows:
            assert family_of(row[-2]) in told_by(row[0]), row[0]


def family_of(licence: str) -> str:
    return next(family for family in FAMILIES if family in licence)


def told_by(package: str) -> str:
    """What the installed package says of its licence."""
    metadata = importlib.metadata.metadata(package)
    fields = ("License-Expression", "License", "Classifier")
    return " ".join(text for field in fields for text in metadata.get_all(field) or [])


def test_the_product_imports_what_it_declares_and_nothing_else(
    product_files: list[Path], project: dict[str, Any], root: Path
) -> None:
    """But for what the page says is there for the user's own work."""
    declared = names(project["project"]["dependencies"]).union(*extras(project).values())
    kept = {row[0] for row in tables(root)["Extras"] if row[2].startswith("not imported")}
    packages = {PACKAGES.get(module, module) for module in imported(product_files)}
    assert packages == declared - kept


def test_all_means_all_extras(project: dict[str, Any]) -> None:
    """Every extra is part of `all`."""
    everything = project["project"]["optional-dependencies"]["all"]
    assert everything == [f"pathbudget[{','.join(sorted(extras(project)))}]"]
