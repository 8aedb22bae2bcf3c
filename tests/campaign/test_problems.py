"""What went wrong is said once, however many workers say it."""

from pathlib import Path

from pathbudget.agents.campaign.controller import WorkerState
from pathbudget.agents.campaign.execute import shared_problems
from pathbudget.agents.campaign.messages import Report
from pathbudget.agents.campaign.plan import VantagePlan
from pathbudget.probes.record import Vantage


def worker(name: str, *problems: str) -> WorkerState:
    plan = VantagePlan(
        vantage=Vantage(name=name, region=name),
        series=(),
        campaign="test",
        run_id="run",
        seed=1,
        duration_ns=1,
    )
    report = Report(fired=0, samples=0, failures={}, reached_ns=0)
    return WorkerState(plan, Path("journal"), report, list(problems))


def test_what_six_vantages_of_a_slow_host_say_is_one_line() -> None:
    slow = [worker(f"v{n}", "this host falls behind") for n in range(6)]
    assert shared_problems(slow) == ["vantage v0 and 5 more: this host falls behind"]


def test_what_one_alone_says_names_it_and_nothing_is_left_out() -> None:
    workers = [worker("a", "one", "both"), worker("b", "both"), worker("c")]
    assert shared_problems(workers) == ["vantage a: one", "vantage a and 1 more: both"]
