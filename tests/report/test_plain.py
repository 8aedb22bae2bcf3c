"""The report is one file with everything in it."""

from pathbudget.analysis.report.html import render_html
from pathbudget.analysis.results import Evaluation


def test_every_section_is_there(evaluation: Evaluation) -> None:
    page = render_html(evaluation)
    for title in ("The answer", "Round-trip times", "How it was measured", "What was left out"):
        assert title in page
