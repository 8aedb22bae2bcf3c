"""The map: lines the shorter way round, labels that do not cover one another."""

from pathbudget.analysis.report.chart_map import segments
from pathbudget.analysis.report.label_placement import Labelled, placed


def test_a_line_over_the_pacific_goes_the_short_way() -> None:
    pieces = segments((35.0, 170.0), (45.0, -170.0))
    assert pieces == [((35.0, 170.0), (40.0, 180.0)), ((40.0, -180.0), (45.0, -170.0))]


def test_and_back() -> None:
    pieces = segments((45.0, -170.0), (35.0, 170.0))
    assert pieces == [((45.0, -170.0), (40.0, -180.0)), ((40.0, 180.0), (35.0, 170.0))]


def test_a_line_over_the_atlantic_is_one_piece() -> None:
    assert segments((40.0, -74.0), (50.0, 8.0)) == [((40.0, -74.0), (50.0, 8.0))]


def test_labels_in_one_place_make_room_and_then_give_up() -> None:
    items = [Labelled(f"name {i}", 50.0, 8.0, bold=False) for i in range(30)]
    found = placed(items, (360.0, 150.0))
    spots = [spot for _, spot in found]
    assert 2 <= len(found) < 30
    assert len(set(spots)) == len(spots)
