"""The files of a gate that a person keeps beside the code: policy and baseline."""

from pathlib import Path

from pathbudget.analysis.gate.baseline import NO_BASELINE, Baseline, parse_baseline, refusal
from pathbudget.analysis.gate.policy import Policy
from pathbudget.analysis.gate.policy_file import parse_policy
from pathbudget.probes.errors import ConfigError, Fault
from pathbudget.sites.toml_reader import read_text

LARGEST_BASELINE = 1 << 28


def read_policy(path: Path) -> Policy:
    """The policy of a file. Raises ConfigError with every fault, each with its line."""
    faults: list[Fault] = []
    text = read_text(path, faults)
    if text is None:
        raise ConfigError(faults)
    return parse_policy(text, str(path))


def read_baseline(path: Path) -> Baseline:
    """The baseline in a file. Raises ConfigError."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_BASELINE + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise refusal(str(path), "", f"cannot be read: {reason}", NO_BASELINE) from None
    if len(content) > LARGEST_BASELINE:
        raise refusal(str(path), "", "over 256 MiB", NO_BASELINE)
    return parse_baseline(content, str(path))
