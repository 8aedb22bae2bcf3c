"""Pages that promise only what is there."""

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from pathbudget.agents.cli.fleet import MODULES
from pathbudget.agents.cli.main import COMMANDS, application

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```|`[^`\n]+`", re.MULTILINE | re.DOTALL)


def generator(root: Path) -> Any:
    spec = importlib.util.spec_from_file_location("generate_cli", root / "docs/generate_cli.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def code_of(page: Path) -> str:
    return "\n".join(CODE.findall(page.read_text()))


def groups_and_commands(group: Any, name: str = "pathbudget") -> Iterator[tuple[str, Any]]:
    yield name, group
    for word, command in getattr(group, "commands", {}).items():
        yield from groups_and_commands(command, f"{name} {word}")


def heading_anchors(page: Path) -> set[str]:
    """Anchors as GitHub makes them out of headings."""
    headings = re.findall(r"^#+ +(.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings}


def test_every_link_leads_to_a_file_and_a_heading(pages: list[Path]) -> None:
    broken: list[str] = []
    for page in pages:
        for link in LINK.findall(CODE.sub("", page.read_text())):
            if re.match(r"[a-z]+:", link):
                continue
            name, _, anchor = link.partition("#")
            target = (page.parent / name).resolve() if name else page
            if not target.exists() or (anchor and anchor not in heading_anchors(target)):
                broken.append(f"{page.name}: {link}")
    assert broken == []


def test_every_make_target_that_a_page_names_exists(pages: list[Path], root: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (root / "Makefile").read_text(), re.MULTILINE))
    named = {
        (page.name, target)
        for page in pages
        for target in re.findall(r"\bmake ([a-z][a-z-]*)", code_of(page))
    }
    assert ("README.md", "demo") in named
    assert [(page, target) for page, target in sorted(named) if target not in targets] == []


def test_every_command_that_a_page_names_exists(pages: list[Path]) -> None:
    known = {name for name, _ in groups_and_commands(typer.main.get_command(application))}
    words = {name.split()[1] for name in known if " " in name}
    named = {
        (page.name, word)
        for page in pages
        for word in re.findall(r"(?m)(?:^|[\s`$/])pathbudget ([a-z][a-z-]+)\b", code_of(page))
    }
    assert named
    assert [(page, word) for page, word in sorted(named) if word not in words] == []


def test_every_option_that_a_page_gives_to_a_command_exists(pages: list[Path]) -> None:
    root = dict(groups_and_commands(typer.main.get_command(application)))
    unknown: list[str] = []
    for page in pages:
        for line in code_of(page).replace("\\\n", " ").splitlines():
            for call in re.findall(r"(?:^|[\s`$/])(pathbudget [a-z][^`|#]*)", line):
                unknown += [f"{page.name}: {call}: {option}" for option in _unknown(root, call)]
    assert unknown == []


def _unknown(commands: dict[str, Any], call: str) -> list[str]:
    """Options in one call that its command does not have."""
    words = call.partition(" -- ")[0].split()
    name = " ".join(words[:2])
    if nested := [n for n in (4, 3) if " ".join(words[:n]) in commands]:
        name = " ".join(words[: nested[0]])
    elif default := getattr(commands.get(name), "default", None):
        name = f"{name} {default}"
    known = {"--help"} | {
        option
        for parameter in getattr(commands.get(name), "params", [])
        for option in (*parameter.opts, *parameter.secondary_opts)
    }
    given = [word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)]
    return [option for option in given if name in commands and option not in known]


def test_the_page_of_commands_is_up_to_date(root: Path) -> None:
    assert (root / "docs/cli.md").read_text() == generator(root).page(), (
        "run: python docs/generate_cli.py"
    )


def test_the_page_of_commands_has_every_command_and_option(root: Path) -> None:
    text = (root / "docs/cli.md").read_text()
    for name, command in groups_and_commands(typer.main.get_command(application)):
        if hasattr(command, "commands"):
            continue
        assert f"## {name}\n" in text
        for parameter in command.params:
            assert (
                parameter.opts == ["--help"]
                or parameter.param_type_name == "argument"
                or (f"`{parameter.opts[0]}`" in text.partition(f"## {name}\n")[2])
            )


def test_every_command_and_option_has_help() -> None:
    without: list[str] = []
    for name, command in groups_and_commands(typer.main.get_command(application)):
        without += [] if command.help else [name]
        without += [f"{name} {p.opts[-1]}" for p in command.params if not p.help]
    assert without == []


def test_every_module_of_commands_is_listed(root: Path) -> None:
    registering = {
        path.stem
        for path in (root / "agents/cli").glob("*.py")
        if "def register(" in path.read_text()
    }
    of_groups = {*MODULES} & registering
    assert {*COMMANDS} | of_groups == registering


@pytest.mark.parametrize("width", [80])
def test_help_fits_the_terminal(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    monkeypatch.setenv("COLUMNS", str(width))
    runner = CliRunner()
    for name, _ in groups_and_commands(typer.main.get_command(application)):
        result = runner.invoke(application, [*name.split()[1:], "--help"])
        assert result.exit_code == 0, name
        assert max(map(len, result.output.splitlines())) <= width, name
