"""What a verdict makes of the build, by the policy."""

from pathbudget.analysis.gate.checks import Effect
from pathbudget.analysis.gate.policy import Treatment
from pathbudget.analysis.results import Verdict

TREATED = {
    Treatment.PASS: Effect.PASS,
    Treatment.FAIL: Effect.FAIL,
    Treatment.MEASURE_MORE: Effect.MEASURE_MORE,
}


def effect_of(verdict: Verdict, undecided: Treatment, not_measured: Treatment) -> Effect:
    """Pass and fail are what they are; the policy speaks where the data does not."""
    match verdict:
        case Verdict.PASS:
            return Effect.PASS
        case Verdict.FAIL:
            return Effect.FAIL
        case Verdict.UNDECIDED:
            return TREATED[undecided]
        case Verdict.NOT_MEASURED:
            return TREATED[not_measured]
