"""What a probe says when it cannot be opened, as faults of the campaign file that asked for it."""

from pathbudget.agents.campaign.plan import SeriesPlan
from pathbudget.probes.errors import ConfigError, Fault, NotOnThisHostError

_OF_HOST = "what this host has"
_EXPECTED = {"interface": "an interface of this host", "source": "an address of this host"}


def faults_at(
    series: SeriesPlan, file: str, error: ConfigError | NotOnThisHostError
) -> list[Fault]:
    """Each with the file and the key path of the entry, and of the option where that is known."""
    if isinstance(error, NotOnThisHostError):
        option = _option_of(series, str(error))
        return [Fault(file, _place(series, option), str(error), _EXPECTED.get(option, _OF_HOST))]
    found: list[Fault] = []
    for fault in error.faults:
        of_a_file = _option_of(series, fault.file)
        option = fault.where if fault.where in series.options else of_a_file
        option = option or _option_of(series, fault.problem)
        problem = f"{fault.file}: {fault.problem}" if of_a_file else fault.problem
        found.append(Fault(file, _place(series, option), problem, fault.expected))
    return found


def _place(series: SeriesPlan, option: str) -> str:
    return f"{series.place}.{option}" if option else series.place


def _option_of(series: SeriesPlan, text: str) -> str:
    """The option whose value stands in a text; empty where none does, or it is a default's."""
    for name, value in series.options.items():
        if isinstance(value, str) and len(value) > 1 and value in text.split(" "):
            return name
    return ""
