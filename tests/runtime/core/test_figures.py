"""What the engine says of itself: every counter of one snapshot, and what it asks the owner to fetch."""

import math

import pytest

from parallel_consumer_runtime.core import (
    Bounds,
    Engine,
    EngineStatistics,
    Gates,
    Ledger,
    PartitionKey,
    Rates,
    Task,
)
from parallel_consumer_runtime.core.map_bounds import MapBounds, fitting_bounds, map_bounds
from parallel_consumer_runtime.handlers import Record

P0, P1 = PartitionKey("t", 0), PartitionKey("t", 1)


def records(key: PartitionKey, first: int, count: int, size_bytes: int = 10) -> list[Record]:
    """Return records of a given size (key and value), each of a key of its own."""
    return [Record(*key, first + n, b"%02d" % n, bytes(size_bytes - 2), 0, ()) for n in range(count)]


def take(engine: Engine) -> Task:
    """Return the next task."""
    task = engine.take(0.0)
    assert task is not None
    return task


def run(engine: Engine, count: int) -> None:
    """Complete the next records."""
    for _ in range(count):
        engine.complete(take(engine))


@pytest.mark.proves(22)
def test_a_snapshot_counts_every_record_where_it_is() -> None:
    """Nothing at first; then one of each kind, told apart by how many there are."""
    engine = Engine("Key", Bounds(40, 100, 10**6), 100)
    assert engine.wanted
    assert set(engine.statistics()) == {0}
    engine.assign(P0, Ledger(0, 9, [(0, 4)]))
    engine.offer(P0, records(P0, 0, 40))
    assert (engine.skipped, engine.statistics().buffered) == (5, 35)
    engine.offer(P0, [record._replace(value=None) for record in records(P0, 40, 5)])
    assert engine.flow().pause == [P0]
    late = {12, 13}
    engine.set_gates(
        Gates(Rates(), ignored_keys=[b"00"], schedule=lambda record: 5.0 if record.offset in late else 0.0)
    )
    run(engine, 6)  # offsets 1 to 4, 10 and 11; 0 is ignored
    for _ in range(4):
        take(engine)
        engine.await_acknowledgement()
    for _ in range(3):
        engine.retry(take(engine), 9.0)
    for _ in range(2):
        take(engine)
    assert engine.statistics() == EngineStatistics(
        in_flight=2,
        producing=4,
        ready=17 + 5,
        retrying=3,
        gated=2,
        ignored=1,
        buffered=33,
        buffered_bytes=28 * 10 + 5 * 2,
        completed=7,
        skipped=5,
        parked=0,
        paused_partitions=1,
    )
    assert engine.runnable == 22
    engine.limit = 10
    assert engine.runnable == 8
    engine.limit = 1
    assert engine.runnable == 0


@pytest.mark.proves(5)
@pytest.mark.parametrize(
    ("bounds", "full", "free"),
    [
        (Bounds(10, 1_000, 10**6), 10, 7),
        (Bounds(5, 1_000, 10**6), 5, 3),
        (Bounds(100, 8, 10**6), 8, 5),
        (Bounds(100, 1_000, 80), 8, 5),
        (Bounds(100, 1_000, 10**6, 100), 10, 7),
    ],
)
def test_nothing_is_fetched_from_a_bound_on_until_a_quarter_is_free(bounds: Bounds, full: int, free: int) -> None:
    """Two partitions hold as much as one may alone; all of them no more than the sums; records here have ten bytes."""
    engine = Engine("Unordered", bounds, 100)
    engine.assign(P0, Ledger(0))
    engine.assign(P1, Ledger(0))
    for number in range(full):
        assert engine.flow().wanted
        key = (P0, P1)[number % 2]
        engine.offer(key, records(key, number, 1))
    for number in range(full, free, -1):
        flow = engine.flow()
        assert not flow.wanted, f"{number} are too many"
        run(engine, 1)
    assert engine.flow().wanted


def test_the_least_that_may_wait_is_one_record() -> None:
    """Bounds so small that half of them is nothing still let work go on."""
    engine = Engine("Unordered", Bounds(1, 1_000, 10**6, 1), 100)
    assert engine.flow().wanted, "also without a partition"
    engine.assign(P0, Ledger(0))
    assert engine.flow() == ([], [], True)
    engine.offer(P0, records(P0, 0, 1))
    assert engine.flow() == ([P0], [], True), "it is paused alone; the next one may be fetched from"
    run(engine, 1)
    assert engine.flow() == ([], [P0], True)


@pytest.mark.proves(17)
@pytest.mark.parametrize("size", [10, 11])
def test_a_partition_is_resumed_at_half_of_its_bound(size: int) -> None:
    """Not above it, however the half is rounded; and said once."""
    engine = Engine("Unordered", Bounds(size, 1_000, 10**6), 100)
    partition = engine.assign(P0, Ledger(0))
    engine.offer(P0, records(P0, 0, size))
    assert [engine.flow().pause for _ in range(2)] == [[P0], []]
    while partition.buffered > 6:
        run(engine, 1)
        assert engine.flow().resume == []
    run(engine, 1)
    assert [engine.flow().resume for _ in range(2)] == [[P0], []]
    assert partition.paused is False


@pytest.mark.proves(5)
@pytest.mark.parametrize(
    ("bounds", "full", "free"),
    [
        (Bounds(5, 1_000, 10**6), 2, 1),
        (Bounds(3, 1_000, 10**6), 1, 0),
        (Bounds(100, 1_000, 10**6, 41), 2, 1),
        (Bounds(100, 1_000, 10**6, 50), 3, 1),
        (Bounds(100, 1_000, 10**6, 80), 4, 2),
    ],
)
def test_one_partition_holds_half_of_what_it_may(bounds: Bounds, full: int, free: int) -> None:
    """Rounded down: so that it is never paused while it is worked on; records here have ten bytes."""
    engine = Engine("Unordered", bounds, 100)
    engine.assign(P0, Ledger(0))
    for number in range(full):
        assert engine.flow().wanted
        engine.offer(P0, records(P0, number, 1))
    for number in range(full, free, -1):
        assert engine.flow() == ([], [], False), f"{number} are too many"
        run(engine, 1)
    assert engine.flow().wanted


def test_the_least_of_bytes_is_one() -> None:
    """A record of one byte fills a partition that may hold three by half."""
    engine = Engine("Unordered", Bounds(100, 1_000, 10**6, 3), 100)
    engine.assign(P0, Ledger(0))
    engine.offer(P0, [Record(*P0, 0, None, b"1", 0, ())])
    assert engine.flow() == ([], [], False)


@pytest.mark.proves(17)
def test_a_partition_is_paused_and_resumed_by_its_bytes() -> None:
    """At the bound, and at half of it."""
    engine = Engine("Unordered", Bounds(1_000, 1_000, 10**6, 100), 100)
    engine.assign(P0, Ledger(0))
    engine.offer(P0, records(P0, 0, 10))
    assert engine.flow().pause == [P0]
    run(engine, 4)
    assert engine.flow().resume == []
    run(engine, 1)
    assert engine.flow().resume == [P0]


@pytest.mark.proves(8)
def test_a_map_is_nearly_full_at_two_thirds_of_what_the_brokers_take() -> None:
    """64 gaps of two runs, or 4,000 bits, of 1,024 characters; and wherever more gaps than are read back would fit."""
    assert map_bounds(1_024) == (64, 4_000, math.inf)
    assert map_bounds() == (256, 10_752, math.inf)
    assert map_bounds(32_767) == (2_047, 10_752, math.inf)


@pytest.mark.proves(8)
def test_a_map_that_must_fit_bounds_how_far_records_overtake() -> None:
    """4.5 offsets a character, and no more than 6,144 gaps of one."""
    assert fitting_bounds(64).reach == 288
    assert fitting_bounds().reach == 12_288


def in_flight(gaps_max: int, span_max: int, done: list[int]) -> tuple[Engine, dict[int, Task]]:
    """Return an engine with twelve of twenty records started, these completed, and the rest held back."""
    engine = Engine("Unordered", Bounds(1_000, 1_000, 10**6), 100, maps=MapBounds(gaps_max, span_max))
    engine.assign(P0, Ledger(0))
    engine.offer(P0, records(P0, 0, 20))
    tasks = {task.record.offset: task for task in (take(engine) for _ in range(12))}
    for offset in done:
        engine.complete(tasks[offset])
    assert engine.take(0.0) is None
    assert engine.statistics().parked == 8
    return engine, tasks


@pytest.mark.proves(8)
def test_what_a_full_map_held_back_goes_on_when_half_of_its_gaps_are_closed() -> None:
    """Of five gaps where four are allowed, the third to close frees it: not the second, not the fourth."""
    engine, tasks = in_flight(4, 3, [1, 3, 5, 7])
    for offset in (0, 2):
        engine.complete(tasks[offset])
        assert engine.take(0.0) is None
    engine.complete(tasks[4])
    assert take(engine).record.offset == 12


@pytest.mark.proves(8)
def test_what_a_full_map_held_back_goes_on_when_it_spans_half() -> None:
    """Six offsets where four are allowed: two, and it goes on."""
    engine, tasks = in_flight(1, 4, [1, 5])
    for offset in (0, 2):
        engine.complete(tasks[offset])
        assert engine.take(0.0) is None
    engine.complete(tasks[3])
    assert take(engine).record.offset == 12


def test_what_was_held_back_is_free_once_it_lies_inside_a_map_however_full() -> None:
    """It makes the map no longer, up to its last offset; the next one would."""
    ledger = Ledger(0, 20, [(0, 0), (5, 5), (20, 20)])
    full = MapBounds(0, 1)
    assert [full.free(offset, ledger) for offset in (5, 20, 21)] == [True, True, False]
    assert MapBounds(6, 1, 21).free(20, ledger)
    assert not MapBounds(6, 1, 21).free(21, ledger), "half empty, and out of reach"


def test_the_last_offset_of_a_map_makes_it_no_longer() -> None:
    """It is incomplete in the map already: nothing holds it back."""
    engine = Engine("Unordered", Bounds(1_000, 1_000, 10**6), 100, maps=MapBounds(0, 1))
    engine.assign(P0, Ledger(10, 20, [(10, 10), (20, 20)]))
    engine.offer(P0, records(P0, 10, 12))
    assert [task.record.offset for task in iter(lambda: engine.take(0.0), None)] == [10, 20]
    assert engine.statistics().parked == 1


def test_a_map_with_as_many_gaps_as_are_allowed_holds_nothing_back() -> None:
    """One more does."""
    engine = Engine("Unordered", Bounds(1_000, 1_000, 10**6), 100, maps=MapBounds(2, 1))
    engine.assign(P0, Ledger(0))
    engine.offer(P0, records(P0, 0, 8))
    tasks = [take(engine) for _ in range(5)]
    engine.complete(tasks[1])
    assert take(engine).record.offset == 5
    engine.complete(tasks[3])
    assert engine.take(0.0) is None


def test_a_task_knows_when_it_was_offered_and_when_it_began() -> None:
    """The time between is what a record waited; each attempt begins anew."""
    engine = Engine("Unordered", Bounds(1_000, 1_000, 10**6), 100)
    engine.assign(P0, Ledger(0))
    engine.offer(P0, records(P0, 0, 1), now=7.0)
    task = engine.take(9.0)
    assert task is not None
    assert (task.offered_at, task.started_at, task.attempt) == (7.0, 9.0, 1)
    engine.retry(task, 11.0)
    engine.wake_retries(11.0)
    assert engine.take(12.0) is task
    assert (task.offered_at, task.started_at, task.attempt) == (7.0, 12.0, 2)
