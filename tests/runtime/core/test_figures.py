"""What the engine says of itself: every counter of one snapshot, and what it asks the owner to fetch."""

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
