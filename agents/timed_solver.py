"""The siting solvers with the machine's clock, for people who do not wait for a proof."""

import time

from pathbudget.analysis.siting.programs import Answer, Program, answer


def timed(program: Program, seconds: float | None) -> Answer:
    """The answer within seconds; None waits until it is proved."""
    return answer(program, seconds=seconds, clock=time.monotonic)
