"""Each bound of the engine filled to the brim: it holds, and what waited is handled all the same."""

import pytest

from parallel_consumer_runtime.core import Bounds, Engine, Gates, GivenUp, Ledger, PartitionKey, Rates, Task
from parallel_consumer_runtime.core.map_bounds import METADATA_SIZE_MAX, MapBounds, fitting_bounds, map_bounds
from parallel_consumer_runtime.handlers import Record
from parallel_consumer_runtime.offsets import OffsetMap, decode, encode, encode_within

P0, P1 = PartitionKey("t", 0), PartitionKey("t", 1)
BATCH = 10
"""Records of a poll in these tests; two may be on their way when a bound is reached."""


def records(key: PartitionKey, first: int, count: int = BATCH, size_bytes: int = 1) -> list[Record]:
    """Return records of one partition, each under a key of its own."""
    return [Record(*key, first + n, b"%d" % (first + n), bytes(size_bytes), 0, ()) for n in range(count)]


def fill(engine: Engine, key: PartitionKey, polls: int, *, size_bytes: int = 1) -> int:
    """Poll as the owner thread would, while records are wanted and the partition is not paused. Return how many came."""
    came = 0
    for _ in range(polls):
        engine.flow()
        if not engine.wanted or engine.partitions[key].paused:
            break
        engine.offer(key, records(key, came, size_bytes=size_bytes))
        came += BATCH
    engine.flow()
    return came


def run_all(engine: Engine, now: float = 0.0) -> int:
    """Complete whatever may start. Return how many."""
    count = 0
    while (task := engine.take(now)) is not None:
        engine.complete(task)
        count += 1
    return count


def fail_all(engine: Engine, due: float) -> list[Task]:
    """Let every record's attempt fail until nothing may start."""
    tasks: list[Task] = []
    while (task := engine.take(0.0)) is not None:
        tasks.append(task)
        engine.retry(task, due)
    return tasks


@pytest.mark.proves(17)
def test_a_partition_of_large_records_is_paused_alone_by_their_bytes() -> None:
    """At its bound of bytes a partition is paused, the other is not; half of the bound resumes it."""
    engine = Engine("Unordered", Bounds(10_000, 10_000, 10**6, 1000), 100)
    engine.assign(P0, Ledger(0))
    engine.assign(P1, Ledger(0))
    engine.offer(P0, records(P0, 0, 9, 100))
    assert engine.flow().pause == []
    engine.offer(P0, records(P0, 9, 1, 100))
    flow = engine.flow()
    assert flow.pause == [P0]
    assert flow.wanted, "the other partition is still fetched"
    for _ in range(4):
        task = engine.take(0.0)
        assert task is not None
        engine.complete(task)
    assert engine.flow().resume == []
    assert run_all(engine) == 6
    assert engine.flow().resume == [P0]


@pytest.mark.proves(17)
def test_a_partition_that_is_full_and_stands_still_holds_up_no_other() -> None:
    """Of two partitions one is full of records that wait: the other is fetched, up to the bound of the whole."""
    engine = Engine("Unordered", Bounds(100, 150, 10**6), 1000)
    engine.assign(P0, Ledger(0))
    engine.assign(P1, Ledger(0))
    assert fill(engine, P0, 50) == 100
    fail_all(engine, due=3600.0)
    assert engine.wanted
    assert fill(engine, P1, 50) == 50
    assert engine.statistics().buffered == 150, "the bound of the whole"


@pytest.mark.proves(17)
@pytest.mark.parametrize(
    ("bounds", "most"),
    [(Bounds(100, 1000, 10**6), 50), (Bounds(1000, 120, 10**6), 120), (Bounds(1000, 1000, 300), 110)],
)
def test_records_that_wait_for_another_attempt_are_bounded(bounds: Bounds, most: int) -> None:
    """Every attempt fails: the heap of retries fills to the bound of what is buffered, and all of it runs in the end."""
    engine = Engine("Key", bounds, 10_000)
    engine.assign(P0, Ledger(0))
    came = 0
    for _ in range(100):
        if engine.flow().wanted:
            engine.offer(P0, records(P0, came))
            came += BATCH
        fail_all(engine, due=60.0)
    assert engine.statistics().retrying == engine.statistics().buffered == came <= most
    assert engine.next_retry_at == 60.0
    engine.wake_retries(60.0)
    assert run_all(engine, 60.0) == came
    assert engine.statistics().retrying == engine.statistics().buffered == 0


@pytest.mark.proves(17)
def test_records_that_wait_at_a_gate_are_bounded() -> None:
    """All are scheduled for later: they fill what may be buffered and no more, and start at their time."""
    engine = Engine("Key", Bounds(100, 1000, 10**6), 10_000)
    engine.set_gates(Gates(Rates(), schedule=lambda _: 60.0))
    engine.assign(P0, Ledger(0))
    came = 0
    for _ in range(100):
        if engine.flow().wanted:
            engine.offer(P0, records(P0, came))
            came += BATCH
        assert engine.take(0.0) is None
    assert engine.statistics().gated == engine.statistics().buffered == came == 50
    engine.wake_retries(60.0)
    assert run_all(engine, 60.0) == came


@pytest.mark.proves(8)
def test_records_held_back_by_a_nearly_full_map_are_bounded() -> None:
    """Every second record stays incomplete: what is held back fills the buffer, and all of it runs once the map shrinks."""
    engine = Engine("Key", Bounds(400, 1000, 10**6), 10_000, maps=MapBounds(4, 8))
    partition = engine.assign(P0, Ledger(0))
    came, kept = 0, list[Task]()
    for _ in range(100):
        if engine.flow().wanted:
            engine.offer(P0, records(P0, came))
            came += BATCH
        while (task := engine.take(0.0)) is not None:
            if task.record.offset % 2:
                engine.complete(task)
            else:
                kept.append(task)
    statistics = engine.statistics()
    assert statistics.parked == statistics.buffered - len(kept) > 0
    assert 200 <= statistics.buffered < 200 + BATCH
    assert partition.ledger.gaps <= 4 + BATCH
    for task in kept:
        engine.complete(task)
    run_all(engine)
    assert engine.statistics().parked == engine.statistics().buffered == 0
    assert engine.completed == came


@pytest.mark.proves(8)
@pytest.mark.parametrize("metadata_max", [64, 1024, METADATA_SIZE_MAX, 32_767])
def test_a_map_at_its_bounds_fits_whatever_the_brokers_take(metadata_max: int) -> None:
    """Full of gaps, or as wide as it may be with every other offset missing, the map leaves a quarter of the room, and is read back."""
    gaps, span, _ = map_bounds(metadata_max)
    far_apart = tuple((first, first) for first in range(0, 100_000 * gaps, 100_000))
    every_other = tuple((first, first) for first in range(0, span, 2))
    for incomplete in (far_apart, every_other):
        map_ = OffsetMap(0, incomplete[-1][1] + 1, incomplete)
        metadata = encode(map_)
        assert len(metadata) <= metadata_max * 3 / 4 + 16
        assert decode(metadata, 0) == map_


@pytest.mark.proves(8, 26)
@pytest.mark.parametrize("metadata_max", [64, 100, METADATA_SIZE_MAX, 32_767])
@pytest.mark.parametrize("every", [2, 3, 7, 64])
def test_a_map_fits_whatever_is_in_flight_where_none_may_be_cut(metadata_max: int, every: int) -> None:
    """Everything runs at once and one of some completes: what lies too far above the lowest waits, and the map is whole."""
    bounds = fitting_bounds(metadata_max)
    engine = Engine("Unordered", Bounds(10**6, 10**6, 10**9), 10**6, maps=bounds)
    partition = engine.assign(P0, Ledger(0))
    engine.offer(P0, records(P0, 0, 20_000))
    tasks = list(iter(lambda: engine.take(0.0), None))
    assert len(tasks) == bounds.reach
    for task in tasks:
        if task.record.offset % every:
            engine.complete(task)
    assert engine.take(0.0) is None
    plan = partition.plan()
    assert plan is not None
    whole = OffsetMap(plan.offset, plan.highest, plan.incomplete)
    metadata, written = encode_within(whole, metadata_max)
    assert written == whole
    assert decode(metadata, plan.offset).incomplete == plan.incomplete
    engine.complete(tasks[0])
    assert run_all(engine) == every, "as many more as the lowest has moved up"


@pytest.mark.proves(17)
def test_nothing_piles_up_behind_a_record_that_never_ends() -> None:
    """A partition comes and goes while one record of it hangs: what waited behind it goes with each assignment."""
    engine = Engine("Partition", Bounds(1000, 1000, 10**6), 100)
    engine.assign(P0, Ledger(0))
    engine.offer(P0, records(P0, 0, 100))
    hanging = engine.take(0.0)
    assert hanging is not None
    for _ in range(50):
        engine.revoke([P0])
        partition = engine.assign(P0, Ledger(0))
        engine.offer(P0, records(P0, 0, 100))
        assert sum(len(waiting or ()) for waiting in partition.shards.values()) == 100
    assert engine.take(0.0) is None, "the old record still holds the partition's order"
    engine.complete(hanging)
    assert run_all(engine) == 100


@pytest.mark.proves(17)
def test_nothing_starts_while_the_way_out_is_full() -> None:
    """Neither a record nor a batch, and nobody is woken for nothing; later all of them."""
    engine = Engine("Key", Bounds(1000, 1000, 10**6), 100)
    engine.assign(P0, Ledger(0))
    engine.offer(P0, records(P0, 0, 20))
    engine.outlet_full = True
    assert engine.runnable == 0
    assert engine.take(0.0) is None
    engine.outlet_full = False
    assert engine.runnable == 20
    assert run_all(engine) == 20


def test_no_more_is_remembered_of_what_was_given_up_than_the_window() -> None:
    """Now and then a record is given up: those that the window has left behind are forgotten."""
    given_up = GivenUp(None, 0.5, 100)
    for number in range(1000):
        assert given_up.note(completed=number * 10) is None
        assert given_up.recent <= 10
    assert given_up.recent == 10


def test_rates_of_keys_are_forgotten_beyond_their_bound() -> None:
    """A hundred keys, long and short: the newest ten are remembered, and a long key's rate is its own."""
    gates = Gates(Rates(per_key=0.1), keys_max=10)
    engine = Engine("Unordered", Bounds(1000, 1000, 10**9), 1000)
    engine.set_gates(gates)
    engine.assign(P0, Ledger(0))
    keys = [b"%d" % number * (1 if number % 2 else 1000) for number in range(100)]
    engine.offer(P0, [Record(*P0, offset, key, b"", 0, ()) for offset, key in enumerate([*keys, keys[-1], keys[-2]])])
    assert run_all(engine) == 100, "a record of each key, and the last two have to wait"
    assert gates.keys_remembered == 10
    assert gates.keys_forgotten == 90
    engine.wake_retries(10.0)
    assert run_all(engine, 10.0) == 2
