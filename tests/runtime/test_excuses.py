"""What a fault excuses, judged on hand-made histories."""

from tests.support.checkers import OneAtATime
from tests.support.excuses import Excuse, OnlyExcusedRepeats, unaware_calls, without_calls
from tests.support.history import End, Event, Life, Outcome, Position, Revoked, Start

MS = 1_000_000
OLD, NEW = Life("m-0", "1"), Life("m-1", "2")
COMMIT_S = 0.1


def _call(life: Life, offset: int, start_ms: int, end_ms: int | None) -> list[Event]:
    at = Position("t", 0, offset)
    start = Start(life, at, "k", start_ms * MS)
    return [start] if end_ms is None else [start, End(life, at, Outcome.DONE, end_ms * MS)]


def _excuse(life: Life | None, from_ms: int, until_ms: int) -> Excuse:
    return Excuse("fault", life, from_ms * MS, until_ms * MS)


def _found(events: list[Event], *excuses: Excuse) -> int:
    return len(OnlyExcusedRepeats(excuses, commit_s=COMMIT_S).check(events))


def test_a_repeat_without_a_fault_is_found() -> None:
    """No excuse at all, and one of another life or of another time, excuse nothing."""
    events = [*_call(OLD, 1, 1000, 1010), *_call(NEW, 1, 2000, 2010)]
    assert _found(events) == 1
    assert _found(events, _excuse(NEW, 1005, 1006)) == 1
    assert _found(events, _excuse(OLD, 500, 900)) == 1


def test_a_call_that_was_committed_before_the_fault_is_found() -> None:
    """A call that ended longer than a commit takes before the fault must not be repeated."""
    events = [*_call(OLD, 1, 1000, 1010), *_call(NEW, 1, 2000, 2010)]
    assert _found(events, _excuse(OLD, 1111, 1500)) == 1
    assert _found(events, _excuse(OLD, 1109, 1500)) == 0


def test_what_was_in_flight_or_ran_in_the_fault_is_excused() -> None:
    """Calls that never ended, and those of the fault's own time, may be repeated."""
    assert _found([*_call(OLD, 1, 1000, None), *_call(NEW, 1, 9000, 9010)], _excuse(None, 5000, 6000)) == 0
    assert _found([*_call(OLD, 1, 5500, 5510), *_call(NEW, 1, 9000, 9010)], _excuse(None, 5000, 6000)) == 0


def test_a_repeat_by_one_who_did_not_know_is_excused() -> None:
    """The second call may be the late one: of a life that was replaced and is not aware of it."""
    events = [*_call(NEW, 1, 5100, 5110), *_call(OLD, 1, 5900, 5910)]
    assert _found(events, _excuse(OLD, 5000, 6000)) == 0
    assert _found(events, _excuse(OLD, 5000, 5800)) == 1


def test_only_the_excused_lifes_overlaps_are_left_out() -> None:
    """Two calls of a key at once stay an overlap unless one of them ran in its life's fault."""
    old, new = _call(OLD, 1, 1000, 6000), _call(NEW, 2, 5500, 5510)
    events = [old[0], *new, old[1]]
    assert OneAtATime().check(without_calls(events, [_excuse(OLD, 5000, 7000)])) == []
    assert len(OneAtATime().check(without_calls(events, [_excuse(OLD, 8000, 9000)]))) == 1


def test_calls_count_as_unaware_until_the_loss_is_told() -> None:
    """What begins after the member was told belongs to its next tenure."""
    events = [*_call(OLD, 1, 5100, 5110), Revoked(OLD, "t", 0, 5200 * MS), *_call(OLD, 2, 5300, 5310)]
    assert unaware_calls(events, [_excuse(OLD, 5000, 6000)]) == 1
