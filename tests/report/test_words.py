"""Numbers, times and lists as a person reads them."""

import math
import time

import pytest

from pathbudget.agents.store.layout import date_of
from pathbudget.analysis.report import words


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0421, "0.042 ms"),
        (4.214, "4.21 ms"),
        (42.14, "42.1 ms"),
        (1421.4, "1,421 ms"),
        (None, "no limit"),
        (math.inf, "no limit"),
        (math.nan, "no limit"),
        (-3.5, "-3.50 ms"),
    ],
)
def test_milliseconds(value: float | None, text: str) -> None:
    assert words.ms(value) == text


def test_intervals() -> None:
    assert words.interval(1.0, 2.0) == "1.00 to 2.00"
    assert words.interval(1.0, None) == "1.00 to no limit"
    assert words.interval(None, None) == "no limit"
    assert words.interval(0.0, None) == words.fine_interval(0.0, math.inf) == "too few to tell"
    assert words.interval(0.0, 2.0) == "0.000 to 2.00"
    assert words.signed_interval(-1.0, None, None) == "too few to tell"
    assert words.signed_interval(None, None, None) == "no limit"
    assert words.signed_interval(0.5, -0.5, 1.0) == "-500 us to 1.00 ms"


def test_given_numbers_stay_as_they_were_written() -> None:
    assert words.given(25.0) == "25"
    assert words.given(1500.0) == "1,500"
    assert words.given(2.5) == "2.5"


def test_lists_with_commas_use_semicolons() -> None:
    assert words.listed(["a", "b", "c"]) == "a, b and c"
    assert words.listed(["a, b", "c"]) == "a, b; and c"
    assert words.listed([]) == "none"


@pytest.mark.parametrize("zone", ["UTC", "EST5EDT,M3.2.0,M11.1.0", "NZST-12NZDT,M9.5.0,M4.1.0/3"])
def test_times_are_utc_and_say_so(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the reader lives, and also on days of 23 and 25 hours."""
    with monkeypatch.context() as where:
        where.setenv("TZ", zone)
        time.tzset()
        assert words.utc(1_772_955_000_000_000_000) == "2026-03-08 07:30:00 UTC"
        assert date_of(1_772_927_999_999_999_999) == "2026-03-07"
        assert date_of(1_772_928_000_000_000_000) == "2026-03-08"
    time.tzset()
    assert words.utc(1_790_000_000_000_000_000) == "2026-09-21 14:13:20 UTC"
    assert words.utc(0) == "not known"


def test_a_tiny_loss_is_not_none() -> None:
    assert words.share(0.0) == "0 %"
    assert words.share(0.0001) == "under 0.1 %"
    assert words.share(0.25) == "25 %"


def test_effective_sample_size_is_said_when_it_matters() -> None:
    assert words.effective(400, 390.0) == "400"
    assert words.effective(400, 80.0) == "400 (worth 80)"
