"""What is said of requests without a time."""

import pytest

from pathbudget.analysis.whole_budget.lost_words import lost_words

TOLD = ("ttft", "terms.toml: quantiles p50, p95 of 2000 requests")
TRACED = ("gateway_and_auth", "traces")


@pytest.mark.parametrize(
    ("lost", "words"),
    [
        ([], "fail"),
        ([TRACED], "fail"),
        ([TOLD], "lie beyond the largest quantile that ttft states"),
        ([TRACED, TOLD], "fail or lie beyond the largest quantile that ttft states"),
    ],
)
def test_what_a_quantile_does_not_tell_is_no_failure(
    lost: list[tuple[str, str]], words: str
) -> None:
    assert lost_words(lost) == words
