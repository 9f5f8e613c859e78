"""The ledger against a model that keeps every offset in a set."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parallel_consumer_runtime.core import Ledger


class Model:
    """Every delivered and every completed offset, kept naively."""

    def __init__(self, base: int) -> None:
        self.base = base
        self.delivered: list[int] = []
        self.completed: set[int] = set()

    def plan(self) -> tuple[int, int, set[int]]:
        incomplete = [offset for offset in self.delivered if offset not in self.completed]
        highest = max(self.completed, default=self.base - 1)
        offset = incomplete[0] if incomplete else max(self.base, highest + 1)
        return offset, max(highest, offset - 1), {offset for offset in incomplete if offset <= highest}


def expand(ranges: tuple[tuple[int, int], ...]) -> set[int]:
    """Return the offsets of inclusive ranges."""
    return {offset for first, last in ranges for offset in range(first, last + 1)}


@pytest.mark.proves(7)
@settings(max_examples=500)
@given(st.integers(0, 1000), st.data())
def test_plans_what_a_naive_model_plans(base: int, data: st.DataObject) -> None:
    """Whatever the order of deliveries with gaps and of completions, plan and gap count equal the model's."""
    ledger, model, position = Ledger(base), Model(base), base
    for _ in range(data.draw(st.integers(0, 40))):
        incomplete = sorted(set(model.delivered) - model.completed)
        ending: bool = data.draw(st.booleans())
        if incomplete and ending:
            offset: int = data.draw(st.sampled_from(incomplete))
            ledger.complete(offset)
            model.completed.add(offset)
        else:
            position += data.draw(st.integers(0, 3))
            assert ledger.deliver(position)
            model.delivered.append(position)
            position += 1
        plan = ledger.plan()
        assert plan is not None
        assert (plan[0], plan[1], expand(plan[2])) == model.plan()
        left = set(model.delivered) - model.completed
        assert ledger.gaps == sum(offset - 1 not in left for offset in left)
        assert ledger.incomplete == len(left)


@settings(max_examples=300)
@given(st.integers(0, 50), st.sets(st.integers(0, 60)), st.sets(st.integers(0, 80)))
def test_resumes_from_a_map(base: int, incomplete: set[int], compacted: set[int]) -> None:
    """Only what the map calls incomplete is handled again; offsets that are gone from the log hold nothing back."""
    highest = base + 60
    known = sorted({base} | {base + offset for offset in incomplete if offset < 60})
    ledger = Ledger(base, highest, _ranges(known))
    for offset in range(base, base + 80):
        if offset - base in compacted:
            continue
        wanted = offset in known or offset > highest
        assert ledger.deliver(offset) is wanted
        if wanted:
            ledger.complete(offset)
    if not {79, *range(61, 79)} <= compacted:
        last = max(offset for offset in range(base, base + 80) if offset - base not in compacted)
        assert ledger.plan() == (last + 1, last, ())


def _ranges(offsets: list[int]) -> list[tuple[int, int]]:
    ranges: list[tuple[int, int]] = []
    for offset in offsets:
        if ranges and ranges[-1][1] == offset - 1:
            ranges[-1] = (ranges[-1][0], offset)
        else:
            ranges.append((offset, offset))
    return ranges


def test_nothing_is_committable_before_anything_is_known() -> None:
    """A group without a commit commits nothing until a record was delivered."""
    ledger = Ledger()
    assert ledger.plan() is None
    assert ledger.deliver(17)
    assert ledger.plan() == (17, 16, ())


def test_an_offset_delivered_twice_counts_once() -> None:
    """A record that is polled again within an assignment is neither handled again nor held incomplete."""
    ledger = Ledger(5)
    assert ledger.deliver(5)
    ledger.complete(5)
    assert not ledger.deliver(5)
    assert ledger.plan() == (6, 5, ())


def test_a_log_that_begins_anew_forgets_the_map() -> None:
    """When records appear below the committed offset, the topic was made anew: nothing of the map is believed."""
    ledger = Ledger(100, 120, [(100, 100), (110, 112)])
    assert ledger.deliver(0)
    ledger.complete(0)
    assert ledger.plan() == (1, 0, ())


def test_retention_that_cut_the_committed_offset_holds_nothing_back() -> None:
    """Incomplete offsets that retention removed count as complete once a later record is delivered."""
    ledger = Ledger(100, 105, [(100, 103)])
    assert ledger.deliver(200)
    ledger.complete(200)
    assert ledger.plan() == (201, 200, ())


@pytest.mark.parametrize("twice", [1, 2])
def test_completing_twice_changes_nothing(twice: int) -> None:
    """A completion that comes again is ignored."""
    ledger = Ledger(0)
    assert ledger.deliver(0)
    assert ledger.deliver(1)
    for _ in range(twice):
        ledger.complete(1)
    assert ledger.plan() == (0, 1, ((0, 0),))
    assert ledger.span == 2


@pytest.mark.proves(14)
def test_memory_follows_what_is_incomplete() -> None:
    """A million completions above one stuck record leave one entry behind."""
    ledger = Ledger(0)
    ledger.deliver(0)
    for offset in range(1, 1_000_001):
        ledger.deliver(offset)
        ledger.complete(offset)
    assert ledger.incomplete == ledger.gaps == 1
    assert ledger.plan() == (0, 1_000_000, ((0, 0),))


def test_what_a_map_calls_incomplete_is_handled_again_and_the_rest_is_not() -> None:
    """The map's gaps close one by one, whether their records come, complete, or are gone from the log."""
    ledger = Ledger(10, 20, [(10, 11), (13, 15), (19, 19)])
    assert (ledger.gaps, ledger.incomplete, ledger.span, ledger.dirty) == (3, 6, 11, False)
    assert [ledger.deliver(offset) for offset in (10, 11, 12)] == [True, True, False]
    assert not ledger.dirty
    assert ledger.deliver(14), "13 is gone"
    assert ledger.dirty
    assert (ledger.gaps, ledger.incomplete) == (3, 5)
    ledger.complete(11)
    assert ledger.plan() == (10, 20, ((10, 10), (14, 15), (19, 19)))
    assert not ledger.dirty
    ledger.complete(10)
    ledger.complete(14)
    assert (ledger.committable, ledger.span) == (15, 6)
    assert ledger.deliver(21), "15 and 19 are gone"
    assert (ledger.gaps, ledger.incomplete, ledger.committable, ledger.span) == (1, 1, 21, 0)
    assert ledger.plan() == (21, 20, ())


def test_offsets_of_a_map_that_are_gone_leave_the_gaps_of_the_others() -> None:
    """Of a pair the first is gone, of two apart the first is gone: one gap less only when nothing of it is left."""
    ledger = Ledger(10, 30, [(10, 10), (13, 14), (20, 20), (22, 22)])
    assert ledger.deliver(14)
    assert (ledger.gaps, ledger.plan()) == (3, (14, 30, ((14, 14), (20, 20), (22, 22))))
    assert not ledger.deliver(21)
    assert (ledger.gaps, ledger.plan()) == (2, (14, 30, ((14, 14), (22, 22))))


def test_nothing_incomplete_needs_no_map() -> None:
    """A map spans from the lowest incomplete offset to the highest complete one, and nothing without either."""
    ledger = Ledger(0)
    assert ledger.span == 0
    ledger.deliver(0)
    assert ledger.span == 0
    ledger.deliver(1)
    ledger.complete(1)
    assert ledger.span == 2
    ledger.complete(0)
    assert ledger.span == 0


def test_a_plan_lists_runs_of_incomplete_offsets() -> None:
    """Neighbours are one run, what lies above the highest complete offset is in none."""
    ledger = Ledger(0)
    for offset in range(10):
        ledger.deliver(offset)
    for offset in (1, 5, 6, 8):
        ledger.complete(offset)
    assert ledger.plan() == (0, 8, ((0, 0), (2, 4), (7, 7)))
    ledger.complete(0)
    assert ledger.plan() == (2, 8, ((2, 4), (7, 7)))


def test_a_maps_last_offset_may_be_incomplete_itself() -> None:
    """Other writers' maps end with what they saw last, complete or not."""
    assert Ledger(10, 20, [(10, 10), (20, 20)]).plan() == (10, 20, ((10, 10), (20, 20)))


def test_a_log_that_begins_anew_has_the_gaps_of_its_own_records() -> None:
    """Nothing of the old map is counted: it would hold records back for a map that is not full."""
    ledger = Ledger(100, 120, [(100, 100), (110, 112)])
    ledger.deliver(0)
    assert (ledger.gaps, ledger.incomplete, ledger.span) == (1, 1, 0)
    assert ledger.plan() == (0, -1, ())
