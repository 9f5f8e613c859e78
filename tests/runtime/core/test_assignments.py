"""Assignments that come and go in ways a group rarely shows: twice, unknown, closed, and long gone."""

import pytest

from parallel_consumer_runtime.core import BatchShape, Bounds, Engine, Gates, Ledger, PartitionKey, Rates, Task
from parallel_consumer_runtime.core.map_bounds import MapBounds
from parallel_consumer_runtime.handlers import Record

WIDE = Bounds(1_000, 1_000, 10**9)
P0, P1 = PartitionKey("t", 0), PartitionKey("t", 1)


def records(key: PartitionKey, *offsets: int) -> list[Record]:
    """Return records of seven bytes each (one of key, six of value), all of one key."""
    return [Record(*key, offset, b"k", b"123456", 0, ()) for offset in offsets]


def take(engine: Engine) -> Task:
    """Return the next task."""
    task = engine.take(0.0)
    assert task is not None
    return task


def test_a_partition_assigned_twice_begins_anew() -> None:
    """Nothing of what was buffered before counts any more, and what still runs is waited for."""
    engine = Engine("Key", WIDE, 10)
    before = engine.assign(P0, Ledger(0))
    assert (before.assignment, before.committed) == (0, 0)
    engine.offer(P0, records(P0, 0, 1, 2))
    old = take(engine)
    after = engine.assign(P0, Ledger(0), assignment=7)
    assert (before.live, after.live, after.assignment) == (False, True, 7)
    assert after.epoch > before.epoch
    statistics = engine.statistics()
    assert (statistics.buffered, statistics.buffered_bytes) == (0, 0)
    engine.offer(P0, records(P0, 0))
    assert engine.take(0.0) is None, "the key is held by the old task"
    engine.complete(old)
    assert take(engine).partition is after
    assert engine.completed == 0


def test_partitions_that_are_not_ours_are_no_error() -> None:
    """A callback that names a stranger ends what is known and leaves the rest alone."""
    engine = Engine("Key", WIDE, 10)
    engine.assign(P0, Ledger(0))
    engine.offer(P0, records(P0, 0))
    assert engine.offer(P1, records(P1, 0)) is False
    engine.close([P1])
    engine.revoke([P1])
    assert engine.statistics().buffered == 1
    task = take(engine)
    assert engine.active([P0, P1]) == 1
    engine.complete(task)
    assert engine.active([P0, P1]) == 0
    assert engine.commits([P1]) == engine.final_commits([P1]) == []
    assert [commit.offset for commit in engine.commits([P1, P0])] == [1]


def test_a_closed_partition_takes_and_hands_out_nothing() -> None:
    """What runs may end and counts; what waits, or comes late, does not start."""
    engine = Engine("Key", WIDE, 10)
    partition = engine.assign(P0, Ledger(0))
    engine.offer(P0, records(P0, 0, 1))
    task = take(engine)
    engine.close([P0])
    engine.offer(P0, records(P0, 2))
    assert partition.buffered == 2
    engine.complete(task)
    assert engine.take(0.0) is None
    assert [commit.offset for commit in engine.final_commits([P0])] == [1]


def test_an_attempt_that_fails_after_its_partition_was_closed_is_not_repeated() -> None:
    """Another member will; here the key is free at once, and no timer runs."""
    engine = Engine("Key", WIDE, 10)
    engine.assign(P0, Ledger(0))
    engine.offer(P0, records(P0, 0))
    task = take(engine)
    engine.close([P0])
    engine.retry(task, 5.0)
    assert engine.next_retry_at is None
    assert engine.active([P0]) == engine.in_flight == 0
    assert engine.wake_retries(9.0) == 0
    assert engine.take(9.0) is None


def test_results_that_are_acknowledged_after_a_revocation_count_for_nobody() -> None:
    """Neither the bytes nor the records of the assignment are taken off twice."""
    engine = Engine("Key", WIDE, 10)
    engine.assign(P0, Ledger(0))
    engine.assign(P1, Ledger(0))
    engine.offer(P0, records(P0, 0, 1))
    engine.offer(P1, records(P1, 0))
    task = take(engine)
    assert task.record.partition == 0
    engine.await_acknowledgement()
    engine.revoke([P0])
    engine.acknowledge(task)
    statistics = engine.statistics()
    assert (statistics.buffered, statistics.buffered_bytes, statistics.completed) == (1, 7, 0)
    assert (statistics.in_flight, statistics.producing) == (0, 0)


def test_keys_of_partitions_that_are_gone_are_forgotten() -> None:
    """A member that saw a thousand partitions come and go keeps nothing of those that nobody holds."""
    engine = Engine("Key", WIDE, 10)
    for number in range(1_000):
        key = PartitionKey("t", number)
        engine.assign(key, Ledger(0))
        engine.offer(key, records(key, 0))
        if number == 500:
            take(engine)
        engine.revoke([key])
    engine.assign(P0, Ledger(0))
    assert set(engine._shards) == {P0, PartitionKey("t", 500)}  # pyright: ignore[reportPrivateUsage]


@pytest.mark.proves(18)
def test_what_waits_at_a_gate_of_a_closed_partition_frees_its_keys() -> None:
    """Throttled and scheduled records of it go; those of the other partition stay where they wait."""
    engine = Engine("Key", WIDE, 10)
    engine.set_gates(Gates(Rates(per_partition=0.5), schedule=lambda record: 10.0 if record.offset == 2 else 0.0))
    for key in (P0, P1):
        engine.assign(key, Ledger(0))
        engine.offer(key, [Record(*key, offset, b"%d" % offset, b"", 0, ()) for offset in range(4)])
    assert [task.record.partition for task in iter(lambda: engine.take(0.0), None)] == [0, 1]
    assert engine.statistics().gated == 6
    engine.close([P0])
    assert engine.statistics().gated == 3
    assert engine.wake_retries(10.0) == 2
    assert [task.record[1:3] for task in iter(lambda: engine.take(10.0), None)] == [(1, 2)]


def test_parked_records_go_with_their_partition() -> None:
    """Held back for a full map, then closed: their keys are free for whoever comes next."""
    engine = Engine("Unordered", WIDE, 100, maps=MapBounds(0, 1))
    partition = engine.assign(P0, Ledger(0))
    engine.offer(P0, records(P0, 0, 1, 2, 3, 4))
    tasks = [take(engine) for _ in range(3)]
    engine.complete(tasks[2])
    assert engine.take(0.0) is None
    assert len(partition.parked) == 2
    engine.close([P0])
    assert partition.parked == []
    assert engine.take(0.0) is None


def test_a_commit_that_is_acknowledged_late_does_not_take_back_a_later_one() -> None:
    """Two were sent, the second is acknowledged first: what counts as committed never goes back."""
    engine = Engine("Key", WIDE, 10)
    partition = engine.assign(P0, Ledger(0))
    engine.offer(P0, records(P0, 0, 1))
    engine.complete(take(engine))
    first = engine.commits()
    engine.complete(take(engine))
    second = engine.commits()
    engine.committed(second, acknowledged=True)
    engine.committed(first, acknowledged=True)
    assert partition.committed == 2


def test_a_partition_without_a_commit_has_one_once_it_is_acknowledged() -> None:
    """Nothing is called committed before, whatever was handled."""
    engine = Engine("Key", WIDE, 10)
    partition = engine.assign(P0, Ledger())
    assert engine.final_commits([P0]) == []
    engine.offer(P0, records(P0, 5))
    engine.complete(take(engine))
    assert partition.committed is None
    engine.committed(engine.commits(), acknowledged=True)
    assert partition.committed == 6


def test_a_batch_of_one_key_ends_where_its_partition_is_another() -> None:
    """Records of the assignment before wait in the same line: a batch never mixes the two."""
    engine = Engine("Key", WIDE, 10)
    engine.assign(P0, Ledger(0))
    engine.offer(P0, records(P0, 0, 1))
    old = take(engine)
    engine.revoke([P0])
    engine.assign(P0, Ledger(0))
    engine.offer(P0, records(P0, 0, 1, 2))
    engine.complete(old)
    batch = engine.take_batch(BatchShape(9, same_key=True), 0.0)
    assert [task.record.offset for task in batch] == [0, 1, 2]
    assert {task.partition for task in batch} == {engine.partitions[P0]}


def test_a_key_is_handed_on_over_records_of_an_assignment_that_is_gone() -> None:
    """Behind a record that runs wait two of its own assignment, which ended, and one of the next: that one runs."""
    engine = Engine("Key", WIDE, 10)
    engine.assign(P0, Ledger(0))
    engine.offer(P0, records(P0, 0, 1, 2))
    old = take(engine)
    engine.revoke([P0])
    partition = engine.assign(P0, Ledger(0))
    engine.offer(P0, records(P0, 0))
    engine.retry(old, 5.0)
    task = take(engine)
    assert (task.partition, task.record.offset) == (partition, 0)
    engine.complete(task)
    assert engine.take(0.0) is None
    assert engine.next_retry_at is None


def test_what_failed_and_what_is_early_both_free_their_keys_when_their_partition_goes() -> None:
    """One key waits for another attempt, one for its time: when the partition comes back neither is held."""
    engine = Engine("Key", WIDE, 10)
    engine.set_gates(Gates(Rates(), schedule=lambda record: 60.0 if record.offset == 1 else 0.0))
    both = [Record(*P0, 0, b"failed", b"", 0, ()), Record(*P0, 1, b"early", b"", 0, ())]
    engine.assign(P0, Ledger(0))
    engine.offer(P0, both)
    engine.retry(take(engine), 60.0)
    assert engine.take(0.0) is None
    engine.revoke([P0])
    assert engine.next_retry_at is None
    engine.assign(P0, Ledger(0))
    engine.offer(P0, both)
    assert [task.record.offset for task in iter(lambda: engine.take(60.0), None)] == [0, 1]


def test_an_ignored_record_leaves_those_that_run_active() -> None:
    """Whoever waits for a partition's records to end waits for all of them."""
    engine = Engine("Unordered", WIDE, 10)
    engine.set_gates(Gates(Rates(), ignored_keys=[b"no"]))
    engine.assign(P0, Ledger(0))
    engine.offer(P0, [Record(*P0, offset, b"no" if offset == 2 else b"yes", b"", 0, ()) for offset in range(4)])
    running = [take(engine) for _ in range(3)]
    assert engine.ignored == 1
    assert engine.active([P0]) == 3
    for task in running:
        engine.complete(task)
    assert engine.active([P0]) == 0


def test_results_that_fail_are_no_longer_on_their_way() -> None:
    """Of three one fails and one is acknowledged: one is left, and the one that failed is tried again."""
    engine = Engine("Unordered", WIDE, 10)
    engine.assign(P0, Ledger(0))
    engine.offer(P0, records(P0, 0, 1, 2))
    tasks = [take(engine) for _ in range(3)]
    for _ in tasks:
        engine.await_acknowledgement()
    engine.retry(tasks[0], 1.0, produced=True)
    engine.acknowledge(tasks[1])
    statistics = engine.statistics()
    assert (statistics.in_flight, statistics.producing, statistics.retrying) == (0, 1, 1)
    assert engine.active([P0]) == 1


def test_a_log_that_begins_anew_within_a_batch_is_handled_from_there() -> None:
    """Also in the first batch of an assignment, and above where that began: nothing of the new log is passed over."""
    engine = Engine("Unordered", WIDE, 10)
    engine.assign(P0, Ledger(0))
    assert engine.offer(P0, records(P0, 5, 6, 3, 4), now=7.0)
    tasks = list(iter(lambda: engine.take(8.0), None))
    assert [(task.record.offset, task.offered_at) for task in tasks] == [(3, 7.0), (4, 7.0)]


def test_with_gates_too_what_failed_is_tried_again_when_it_is_due() -> None:
    """Beside what was early, and before what is new."""
    engine = Engine("Unordered", WIDE, 10)
    engine.set_gates(Gates(Rates(), schedule=lambda record: 5.0 if record.offset == 1 else 0.0))
    engine.assign(P0, Ledger(0))
    engine.offer(P0, records(P0, 0, 1, 2))
    engine.retry(take(engine), 5.0)
    assert take(engine).record.offset == 2
    engine.offer(P0, records(P0, 3))
    assert engine.wake_retries(5.0) == 2
    assert [task.record.offset for task in iter(lambda: engine.take(5.0), None)] == [0, 1, 3]
