"""When so many records are given up that the member stops instead: in a row, and among the last ones."""

import pytest

from parallel_consumer_runtime.core import GivenUp


@pytest.mark.proves(13)
def test_so_many_in_a_row_are_a_reason_to_stop() -> None:
    """The third in a row is not given up; one that completes in between begins the count anew."""
    given_up = GivenUp(3, None, 100)
    assert [given_up.note(0), given_up.note(0)] == [None, None]
    assert [given_up.note(1), given_up.note(1)] == [None, None]
    assert given_up.note(1) == "3 records in a row failed for good"


def test_the_record_that_is_not_given_up_counts_again_when_it_comes_again() -> None:
    """A reason to stop is given each time: the record was not given up, so nothing was noted."""
    given_up = GivenUp(2, None, 100)
    assert given_up.note(7) is None
    assert given_up.note(7) == given_up.note(7) == "2 records in a row failed for good"
    assert given_up.note(8) is None


@pytest.mark.proves(13)
def test_so_many_of_the_last_ones_are_a_reason_to_stop() -> None:
    """Three of ten, however far apart; what was given up counts among the ten."""
    given_up = GivenUp(None, 0.3, 10)
    assert [given_up.note(0), given_up.note(7)] == [None, None]
    assert given_up.note(7) == "3 of the last 10 records failed for good"


def test_what_lies_before_the_window_is_forgotten() -> None:
    """With eight completed and two given up, the first of them is the eleventh last."""
    given_up = GivenUp(None, 0.3, 10)
    assert [given_up.note(0), given_up.note(8), given_up.note(8)] == [None, None, None]
    assert given_up.note(8) == "3 of the last 10 records failed for good"


def test_a_ratio_below_one_record_stops_at_the_first() -> None:
    """A bound that rounds to nothing does not stop before anything failed, and not later than at the first."""
    assert GivenUp(None, 0.001, 10).note(1_000) == "1 of the last 10 records failed for good"


def test_without_bounds_everything_may_be_given_up() -> None:
    """Neither bound is on by itself."""
    given_up = GivenUp(None, None, 10)
    assert {given_up.note(0) for _ in range(1_000)} == {None}
