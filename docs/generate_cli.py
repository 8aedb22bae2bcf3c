"""Write docs/cli.md from the command itself: ``python docs/generate_cli.py``."""

import importlib
import inspect
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

PAGE = Path(__file__).with_name("cli.md")
HEAD = """# Commands

Made from the command's own help by `python docs/generate_cli.py`; do not edit.

Results go to stdout, progress and messages to stderr. Exit codes:

| code | meaning |
|---|---|
"""


def page() -> str:
    """The whole page."""
    import typer

    from pathbudget.agents.cli.main import application

    root = typer.main.get_command(application)
    sections = [_section(name, command) for name, command in commands(root, "pathbudget")]
    return HEAD + _exit_codes() + "\n" + "\n".join(sections)


def commands(group: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Every command below `group` that does something, with its full name."""
    for word, command in group.commands.items():
        full = f"{name} {word}"
        if hasattr(command, "commands"):
            yield from commands(command, full)
        else:
            yield full, command


def _exit_codes() -> str:
    exits = importlib.import_module("pathbudget.agents.cli.exits")
    lines = inspect.getsource(exits.ExitCode).splitlines()
    rows: list[str] = []
    for code in exits.ExitCode:
        at = next(n for n, line in enumerate(lines) if line.strip().startswith(f"{code.name} ="))
        following = lines[at + 1].strip() if at + 1 < len(lines) else ""
        said = following.strip('"') if following.startswith('"""') else "It did what was asked."
        rows.append(f"| {int(code)} | {said} |\n")
    return "".join(rows)


def _section(name: str, command: Any) -> str:
    parts = [f"## {name}\n\n```\n{_usage(name, command)}\n```\n\n{_prose(command.help)}\n"]
    rows = [_row(parameter) for parameter in command.params if "--help" not in parameter.opts]
    if rows:
        parts.append("\n| option | default | meaning |\n|---|---|---|\n" + "".join(rows))
    return "".join(parts)


def _usage(name: str, command: Any) -> str:
    """The shortest call: arguments, and the options that must be there."""
    words = [name]
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            words.append(_argument(parameter))
        elif parameter.required:
            words.append(f"{parameter.opts[0]} {_value(parameter)}")
    optional = any(
        parameter.param_type_name == "option"
        and not parameter.required
        and "--help" not in parameter.opts
        for parameter in command.params
    )
    return " ".join([*words, "[OPTIONS]"] if optional else words)


def _argument(parameter: Any) -> str:
    word = _value(parameter) + ("..." if parameter.nargs == -1 else "")
    return word if parameter.required else f"[{word}]"


def _value(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name).strip("[]").upper()


def _prose(text: str | None) -> str:
    return inspect.cleandoc(text or "").replace("\b\n", "").strip()


def _row(parameter: Any) -> str:
    names = [*parameter.opts, *parameter.secondary_opts]
    if parameter.param_type_name == "argument":
        names = [_argument(parameter)]
    named = ", ".join(f"`{name}`" for name in names)
    help_text = " ".join((parameter.help or "").split()).replace("|", "\\|")
    return f"| {named} | {_default(parameter)} | {help_text} |\n"


def _default(parameter: Any) -> str:
    if parameter.required:
        return "required"
    default = parameter.default
    if default in (None, False, "", (), []) or callable(default):
        return ""
    return f"`{default.value if isinstance(default, Enum) else default}`"


if __name__ == "__main__":
    PAGE.write_text(page())
