"""Batches: as large as allowed, in key order, each record settled by itself, and whatever failed goes first again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parallel_consumer_runtime.core import Batch, BatchShape, Bounds, Engine, Gates, Ledger, PartitionKey, Rates, Task
from parallel_consumer_runtime.core.map_bounds import MapBounds
from parallel_consumer_runtime.handlers import Record

WIDE = Bounds(1_000_000, 1_000_000, 10**9)
P0, P1 = PartitionKey("t", 0), PartitionKey("t", 1)
pytestmark = pytest.mark.proves(4)


def make(keys: list[bytes | None], ordering: str = "Key", limit: int = 100) -> Engine:
    """Return an engine with one partition of records with these keys."""
    engine = Engine(ordering, WIDE, limit)
    engine.assign(P0, Ledger(0))
    offer(engine, keys)
    return engine


def offer(engine: Engine, keys: list[bytes | None], first: int = 0) -> None:
    """Offer records from an offset on."""
    engine.offer(P0, [Record("t", 0, first + n, key, b"", 0, ()) for n, key in enumerate(keys)])


def offsets(tasks: list[Task]) -> list[int]:
    """Return the offsets of a batch."""
    return [task.record.offset for task in tasks]


def test_a_batch_is_at_most_its_size_and_the_limit() -> None:
    """Each record counts against the concurrency."""
    engine = make([b"%d" % n for n in range(20)], limit=12)
    shape = BatchShape(8)
    assert [len(engine.take_batch(shape, 0.0)) for _ in range(3)] == [8, 4, 0]


def test_a_batch_of_several_keys_has_one_record_of_each() -> None:
    """No key twice: its second record waits until the first is complete."""
    engine = make([b"a", b"a", b"b", b"c", b"c"])
    batch = engine.take_batch(BatchShape(8), 0.0)
    assert offsets(batch) == [0, 2, 3]
    for task in batch:
        engine.complete(task)
    assert offsets(engine.take_batch(BatchShape(8), 0.0)) == [1, 4]


def test_a_batch_of_one_key_has_its_records_in_order() -> None:
    """The key is held until all of them have ended."""
    engine = make([b"a", b"b", b"a", b"a", b"b", b"a"])
    shape = BatchShape(3, same_key=True)
    first = engine.take_batch(shape, 0.0)
    second = engine.take_batch(shape, 0.0)
    assert (offsets(first), offsets(second)) == ([0, 2, 3], [1, 4])
    for task in first[1:]:
        engine.complete(task)
    assert engine.take_batch(shape, 0.0) == []
    engine.complete(first[0])
    assert offsets(engine.take_batch(shape, 0.0)) == [5]


def test_a_batch_of_a_partition_is_consecutive() -> None:
    """Under Partition ordering the shard is the partition."""
    engine = make([b"a", b"b", None, b"c"], ordering="Partition")
    assert offsets(engine.take_batch(BatchShape(3, same_key=True), 0.0)) == [0, 1, 2]
    assert engine.take_batch(BatchShape(3, same_key=True), 0.0) == []


def test_what_failed_of_a_key_goes_first_again_in_order() -> None:
    """Records 1 and 3 of five fail: both come before anything later of their key, in their order."""
    engine = make([b"a"] * 8)
    shape = BatchShape(5, same_key=True)
    batch = engine.take_batch(shape, 0.0)
    for place in (3, 0, 1, 4, 2):
        if place in {1, 3}:
            engine.retry(batch[place], 5.0 - place)
        else:
            engine.complete(batch[place])
    assert engine.take_batch(shape, 1.0) == []
    assert engine.next_retry_at == 4.0, "the first failed one's time counts"
    engine.wake_retries(4.0)
    again = engine.take_batch(shape, 4.0)
    assert offsets(again) == [1, 3, 5, 6, 7]
    assert [task.attempt for task in again] == [2, 2, 1, 1, 1]


def test_too_few_records_wait_for_others_and_no_longer_than_they_may() -> None:
    """The minimum with its linger: at once when there are enough, after the linger with what there is."""
    engine = make([b"a", b"b"])
    shape = BatchShape(8, least=4, linger_s=0.5)
    assert engine.take_batch(shape, 10.0) == []
    assert engine.next_retry_at == 10.5
    offer(engine, [b"c", b"d"], first=2)
    assert offsets(engine.take_batch(shape, 10.1)) == [0, 1, 2, 3]
    offer(engine, [b"e"], first=4)
    assert engine.take_batch(shape, 20.0) == []
    assert engine.take_batch(shape, 20.4) == []
    assert offsets(engine.take_batch(shape, 20.5)) == [4]
    assert engine.next_retry_at is None


def test_a_minimum_above_the_concurrency_is_the_concurrency() -> None:
    """Otherwise lowering the concurrency below the minimum would end in lingering for each batch."""
    engine = make([b"%d" % n for n in range(20)], limit=2)
    assert len(engine.take_batch(BatchShape(8, least=8, linger_s=9.0), 0.0)) == 2


def test_a_batch_whose_partition_is_revoked_leaves_nothing_held() -> None:
    """Completed or failed afterwards, the key is free for the next assignment."""
    engine = make([b"a"] * 4)
    batch = engine.take_batch(BatchShape(3, same_key=True), 0.0)
    engine.revoke([P0])
    engine.assign(P0, Ledger(0))
    offer(engine, [b"a"] * 4)
    assert engine.take_batch(BatchShape(3, same_key=True), 0.0) == []
    engine.complete(batch[1])
    engine.retry(batch[0], 1.0)
    assert engine.take_batch(BatchShape(3, same_key=True), 0.0) == []
    engine.complete(batch[2])
    assert offsets(engine.take_batch(BatchShape(3, same_key=True), 0.0)) == [0, 1, 2]


@given(
    keys=st.lists(st.sampled_from([b"a", b"b", None]), max_size=40),
    size=st.integers(1, 6),
    same_key=st.booleans(),
    failures=st.sets(st.integers(0, 39)),
    ordering=st.sampled_from(["Key", "Partition", "Unordered"]),
    data=st.data(),
)
def test_every_record_completes_and_none_runs_beside_its_key(  # noqa: PLR0917 - hypothesis gives them by name
    keys: list[bytes | None],
    size: int,
    same_key: bool,  # noqa: FBT001 - as above
    failures: set[int],
    ordering: str,
    data: st.DataObject,
) -> None:
    """Batches end in any order, some records fail once: everything is complete at the end, no shard ran twice at once."""
    engine = make(keys, ordering=ordering)
    shape = BatchShape(size, same_key=same_key)
    running: list[list[Task]] = []
    left = set(failures)
    for now in range(1000):
        engine.wake_retries(now)
        while batch := engine.take_batch(shape, now):
            running.append(batch)
            shards = [{task.shard for task in one} - {None} for one in running]
            assert sum(len(one) for one in shards) == len(set[object]().union(*shards))
        if not running:
            break
        batch = running.pop(data.draw(st.integers(0, len(running) - 1)))
        for task in data.draw(st.permutations(batch)):
            if task.record.offset in left:
                left.remove(task.record.offset)
                engine.retry(task, now + 1)
            else:
                engine.complete(task)
    commits = engine.commits()
    assert [commit.offset for commit in commits] == ([len(keys)] if keys else [])
    assert engine.statistics().buffered == 0


def test_a_batch_of_one_key_ends_where_its_key_must_wait() -> None:
    """Its rate, its partition's, the member's, an ignored key or a later schedule: what may not start stays behind."""
    for gates, sizes in (
        (Gates(Rates(per_key=20.0)), [2, 0]),
        (Gates(Rates(per_partition=20.0)), [2, 0]),
        (Gates(Rates(member=20.0)), [2, 0]),
        (Gates(Rates(), schedule=lambda record: 9.0 if record.offset >= 3 else 0.0), [3, 0]),
        (Gates(Rates(member=1e9), ignored_keys=[b"a"]), [0, 0]),
    ):
        engine = make([b"a"] * 6)
        engine.set_gates(gates)
        batch = engine.take_batch(BatchShape(6, same_key=True), 0.0)
        for task in batch:
            engine.complete(task)
        assert [len(batch), len(engine.take_batch(BatchShape(6, same_key=True), 0.0))] == sizes
        assert engine.statistics().completed == (sizes[0] or 6)


@pytest.mark.parametrize(("gaps_max", "first"), [(1, [1]), (2, [1, 3, 4])])
def test_a_batch_of_one_key_ends_where_the_map_is_full(gaps_max: int, first: list[int]) -> None:
    """The bounds of the commit's map hold for the records behind the first one too: here it has two gaps."""
    engine = Engine("Key", WIDE, 100, maps=MapBounds(gaps_max, 2))
    engine.assign(P0, Ledger(0))
    offer(engine, [b"x", b"a", b"y", b"a", b"a"])
    x, head, y = (engine.take(0.0) for _ in range(3))
    assert x is not None
    assert head is not None
    assert y is not None
    engine.complete(y)
    engine.retry(head, 1.0)
    engine.wake_retries(1.0)
    batch = engine.take_batch(BatchShape(6, same_key=True), 1.0)
    assert offsets(batch) == first
    engine.complete(x)
    for task in batch:
        engine.complete(task)
    assert [*first, *offsets(engine.take_batch(BatchShape(6, same_key=True), 1.0))] == [1, 3, 4]


def test_a_call_tells_of_its_tasks_what_a_single_one_would() -> None:
    """The highest attempt, the time of its start, and the records in order are what a handler sees."""
    engine = make([b"a"] * 3)
    shape = BatchShape(3, same_key=True)
    (first, *rest) = engine.take_batch(shape, 1.0)
    for task in rest:
        engine.complete(task)
    engine.retry(first, 2.0)
    engine.wake_retries(2.0)
    offer(engine, [b"a"] * 2, first=3)
    call = Batch(engine.take_batch(shape, 7.0))
    assert (call.attempt, call.started_at) == (2, 7.0)
    assert {task.started_at for task in call.tasks} == {7.0}
    assert Batch(call.tasks[:1]).started_at == 7.0
    assert call.argument == [task.argument for task in call.tasks]
    assert [record.offset for record in call.argument] == [0, 3, 4]


def test_a_batch_of_a_partition_ends_before_an_ignored_key() -> None:
    """The ignored record is complete by itself, in its turn, and the next batch goes on behind it."""
    engine = make([b"a", b"a", b"no", b"a"], ordering="Partition")
    engine.set_gates(Gates(Rates(), ignored_keys=[b"no"]))
    shape = BatchShape(6, same_key=True)
    batch = engine.take_batch(shape, 0.0)
    assert offsets(batch) == [0, 1]
    for task in batch:
        engine.complete(task)
    assert offsets(engine.take_batch(shape, 0.0)) == [3]
    assert engine.ignored == 1


def test_all_of_a_batch_that_failed_are_repeated_in_order() -> None:
    """With nothing else waiting of their key, and whatever the order in which they failed."""
    engine = make([b"a"] * 3)
    shape = BatchShape(3, same_key=True)
    for task in reversed(engine.take_batch(shape, 0.0)):
        engine.retry(task, 1.0 + task.record.offset)
    assert engine.next_retry_at == 1.0
    engine.wake_retries(1.0)
    assert offsets(engine.take_batch(shape, 1.0)) == [0, 1, 2]
    assert engine.statistics().in_flight == 3


def test_a_minimum_of_one_keys_records_counts_those_behind_it() -> None:
    """Three are enough for three; two linger, and so does a record that excludes nothing, whatever waits beside it."""
    shape = BatchShape(8, least=3, linger_s=5.0, same_key=True)
    assert offsets(make([b"a"] * 3).take_batch(shape, 0.0)) == [0, 1, 2]
    for keys, batch in (([b"a"] * 2, [0, 1]), ([b"a"], [0]), ([None] * 9, [0])):
        engine = make([*keys])
        assert engine.take_batch(shape, 0.0) == []
        assert engine.next_retry_at == 5.0
        assert offsets(engine.take_batch(shape, 5.0)) == batch
    assert make([b"a"]).take_batch(shape._replace(least=2), 0.0) == []


def test_a_halted_engine_makes_no_batch() -> None:
    """Nor one that has no room, nor one without records."""
    engine = make([b"a", b"b"], limit=1)
    engine.halted = True
    assert engine.take_batch(BatchShape(8), 0.0) == []
    engine.halted = False
    (task,) = engine.take_batch(BatchShape(8), 0.0)
    assert engine.take_batch(BatchShape(8), 0.0) == []
    engine.complete(task)
    engine.complete(*engine.take_batch(BatchShape(8), 0.0))
    assert engine.take_batch(BatchShape(8), 0.0) == []
