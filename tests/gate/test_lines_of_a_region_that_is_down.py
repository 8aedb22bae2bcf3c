"""Lines of a region whose every request failed: the recommendation gives it no site."""

import pytest
from tests.gate.conftest import make_line, make_of_lines

from pathbudget.analysis.report.lookup import Lookup
from pathbudget.analysis.report.selection import Wanted, select
from pathbudget.analysis.results import Verdict

SITES = ("ashburn", "dallas")


@pytest.mark.parametrize(
    ("asked", "held"), [((), "ashburn"), (("ashburn",), "ashburn"), (("dallas",), "dallas")]
)
def test_it_is_held_to_a_site_that_was_asked_for(asked: tuple[str, ...], held: str) -> None:
    lines = [
        make_line(None, None, None, site=site, losses=400, verdict=Verdict.FAIL) for site in SITES
    ]
    selected = select(Lookup(make_of_lines(lines)), Wanted(sites=asked))
    assert [line.site for line in selected.lines] == [held]
    assert selected.verdict is Verdict.FAIL
    assert selected.missing == ()
