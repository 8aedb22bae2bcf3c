"""Durations on the command line, within what an option allows."""

from pathbudget.agents.cli.exits import ExitCode, fail


def duration_within(text: str, option: str, least: int, most: int) -> int:
    """In nanoseconds; exits with a message that names `option` where it is none or out of range."""
    from pathbudget.agents.units import format_duration, parse_duration_ns

    try:
        value = parse_duration_ns(text)
    except ValueError as error:
        raise fail(f"{option}: {error}", ExitCode.USAGE) from None
    if not least <= value <= most:
        limits = f"{format_duration(least)} to {format_duration(most)}"
        raise fail(f"{option}: {text} is out of range; {limits} is right", ExitCode.USAGE)
    return value
