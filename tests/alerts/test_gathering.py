"""Notices of one rule go together: one dead bus sends no hundred mails."""

from tests.alerts.conftest import AT, MINUTE, SECOND, a_signal

from pathbudget.analysis.alerts.gathering import Gathered
from pathbudget.analysis.alerts.model import AlertState, News, Notice, Phase


def notice(news: News, key: str = "r/one", at: int = AT) -> Notice:
    state = AlertState(a_signal(key=key), Phase.FIRING, at, at)
    return Notice(news, at, state)


def test_the_first_goes_at_once_and_what_follows_soon_goes_together() -> None:
    gathered = Gathered()
    gathered.add(notice(News.FIRING, "r/0"))
    assert len(gathered.take("r", AT, 2 * MINUTE)) == 1
    for number in range(1, 100):
        gathered.add(notice(News.FIRING, f"r/{number}"))
        assert gathered.take("r", AT + number * SECOND, 2 * MINUTE) == []
    assert len(gathered.take("r", AT + 2 * MINUTE, 2 * MINUTE)) == 99


def test_what_is_over_before_anybody_was_told_is_told_once_as_over() -> None:
    gathered = Gathered()
    gathered.add(notice(News.FIRING))
    gathered.add(notice(News.RESOLVED))
    assert [one.news for one in gathered.take("r", AT, MINUTE)] == [News.RESOLVED]


def test_an_end_that_waits_is_not_lost_when_it_begins_again() -> None:
    gathered = Gathered()
    gathered.add(notice(News.RESOLVED))
    gathered.add(notice(News.FIRING))
    told = [one.news for one in gathered.take("r", AT, MINUTE)]
    assert sorted(told) == [News.FIRING, News.RESOLVED]


def test_rules_do_not_wait_for_each_other() -> None:
    gathered = Gathered()
    gathered.add(notice(News.FIRING))
    assert gathered.take("other", AT, MINUTE) == []
    assert gathered.take("r", AT, MINUTE)
