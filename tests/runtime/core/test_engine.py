"""The engine's promises, under every order of events that hypothesis finds, and the rare ones by name."""

from collections import defaultdict

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from parallel_consumer_runtime.core import Bounds, Engine, Ledger, PartitionKey, Task
from parallel_consumer_runtime.core.map_bounds import MapBounds, map_bounds
from parallel_consumer_runtime.handlers import Record

WIDE = Bounds(100_000, 100_000, 10**9)
P0, P1 = PartitionKey("t", 0), PartitionKey("t", 1)


def record(partition: int, offset: int, key: bytes | None) -> Record:
    """Return a record with a value of ten bytes."""
    return Record("t", partition, offset, key, b"0123456789", 0, ())


def drain(engine: Engine) -> list[Record]:
    """Run everything that may run, at once and successfully; return the records in the order of their start."""
    seen: list[Record] = []
    while (task := engine.take(0.0)) is not None:
        seen.append(task.record)
        engine.complete(task)
    return seen


class EngineMachine(RuleBasedStateMachine):
    """Two partitions, few keys: revocations, reassignments, retries and produced results in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.engine = Engine("Key", WIDE, 4)
        self.running: list[Task] = []
        self.producing: list[Task] = []
        self.positions: dict[int, int] = {}
        self.committed: dict[int, int] = {0: 0, 1: 0}
        self.done: dict[int, set[int]] = defaultdict(set)
        self.started: dict[tuple[int, bytes], int] = {}

    @initialize(
        ordering=st.sampled_from(["Key", "Partition", "Unordered"]),
        limit=st.integers(1, 8),
        gaps=st.integers(0, 3),
        span=st.integers(0, 6),
    )
    def begin(self, ordering: str, limit: int, gaps: int, span: int) -> None:
        self.engine = Engine(ordering, WIDE, limit, maps=MapBounds(gaps, span))

    @rule(partition=st.sampled_from([0, 1]))
    def assign(self, partition: int) -> None:
        if partition in self.positions:
            return
        self.engine.assign(PartitionKey("t", partition), Ledger(self.committed[partition]))
        self.positions[partition] = self.committed[partition]
        self.done[partition] = {o for o in self.done[partition] if o < self.committed[partition]}
        self.started = {k: v for k, v in self.started.items() if k[0] != partition}

    @rule(partition=st.sampled_from([0, 1]), keys=st.lists(st.sampled_from([b"a", b"b", b"c", None]), max_size=6))
    def offer(self, partition: int, keys: list[bytes | None]) -> None:
        if partition not in self.positions:
            return
        first = self.positions[partition]
        self.engine.offer(
            PartitionKey("t", partition), [record(partition, first + i, key) for i, key in enumerate(keys)]
        )
        self.positions[partition] = first + len(keys)

    @rule()
    def take(self) -> None:
        task = self.engine.take(0.0)
        if task is None:
            return
        one = task.record
        self.running.append(task)
        assert len(self.running) <= self.engine.limit
        others = [t for t in self.running + self.producing if t is not task]
        held = [t for t in others if t.record.partition == one.partition]
        if self.engine.ordering == "Key" and one.key is not None:
            assert all(t.record.key != one.key for t in held), "two records of a key at once"
        if self.engine.ordering == "Partition":
            assert not held, "two records of a partition at once"
        if self.engine.ordering != "Unordered" and one.key is not None and task.attempt == 1:
            before = self.started.get((one.partition, one.key), -1)
            assert one.offset > before, "a key went back"
            self.started[one.partition, one.key] = one.offset

    @precondition(lambda self: self.running)
    @rule(data=st.data(), how=st.sampled_from(["complete", "retry", "produce"]))
    def end(self, data: st.DataObject, how: str) -> None:
        task = self.running.pop(data.draw(st.integers(0, len(self.running) - 1)))
        if how == "complete":
            self.engine.complete(task)
            self._note(task)
        elif how == "retry":
            self.engine.retry(task, 1.0)
        else:
            self.engine.await_acknowledgement()
            self.producing.append(task)

    @precondition(lambda self: self.producing)
    @rule(data=st.data(), good=st.booleans())
    def acknowledged(self, data: st.DataObject, *, good: bool) -> None:
        task = self.producing.pop(data.draw(st.integers(0, len(self.producing) - 1)))
        if good:
            self.engine.acknowledge(task)
            self._note(task)
        else:
            self.engine.retry(task, 1.0, produced=True)

    @rule()
    def retries_come_due(self) -> None:
        self.engine.wake_retries(2.0)

    @rule(partition=st.sampled_from([0, 1]), commit=st.booleans())
    def revoke(self, partition: int, *, commit: bool) -> None:
        if partition not in self.positions:
            return
        if commit:
            self.engine.close([PartitionKey("t", partition)])
            self.commit()
        self.engine.revoke([PartitionKey("t", partition)])
        del self.positions[partition]

    @rule()
    def commit(self) -> None:
        for plan in self.engine.commits():
            partition = plan.source.key.partition
            assert plan.offset >= self.committed[partition], "a commit went back"
            assert set(range(self.committed[partition], plan.offset)) <= self.done[partition], "committed, not done"
            self.committed[partition] = plan.offset

    @invariant()
    def counts_agree(self) -> None:
        statistics = self.engine.statistics()
        assert statistics.in_flight == len(self.running)
        assert statistics.producing == len(self.producing)
        assert statistics.buffered == sum(p.buffered for p in self.engine.partitions.values()) >= 0
        for partition in self.engine.partitions.values():
            assert partition.buffered == partition.ledger.incomplete

    def teardown(self) -> None:
        """Liveness: let everything end, and every delivered record of what is still assigned is complete."""
        while self.running or self.producing:
            for task in self.running:
                self.engine.complete(task)
                self._note(task)
            for task in self.producing:
                self.engine.acknowledge(task)
                self._note(task)
            self.running, self.producing = [], []
            self.engine.wake_retries(9.0)
            while (ready := self.engine.take(0.0)) is not None:
                self.running.append(ready)
        self.engine.wake_retries(9.0)
        drain(self.engine)
        for partition, position in self.positions.items():
            assert self.engine.partitions[PartitionKey("t", partition)].ledger.committable == position

    def _note(self, task: Task) -> None:
        if task.partition.live:
            self.done[task.record.partition].add(task.record.offset)


EngineMachine.TestCase.settings = settings(max_examples=300, stateful_step_count=60, deadline=None)
TestEngine = EngineMachine.TestCase


@pytest.mark.proves(1)
def test_a_key_runs_in_order_and_others_beside_it() -> None:
    """With one key blocked, every other key goes on; the blocked key's records follow in offset order."""
    engine = Engine("Key", WIDE, 10)
    engine.assign(P0, Ledger(0))
    engine.offer(
        P0, [record(0, 0, b"a"), record(0, 1, b"a"), record(0, 2, b"b"), record(0, 3, None), record(0, 4, None)]
    )
    first = engine.take(0.0)
    assert first is not None
    assert [r.offset for r in drain(engine)] == [2, 3, 4]
    engine.complete(first)
    assert [r.offset for r in drain(engine)] == [1]


@pytest.mark.proves(11)
def test_a_key_stays_held_until_its_results_are_acknowledged() -> None:
    """The handler's place is free while results are on their way; the key is not."""
    engine = Engine("Key", WIDE, 1)
    engine.assign(P0, Ledger(0))
    engine.offer(P0, [record(0, 0, b"a"), record(0, 1, b"a"), record(0, 2, b"b")])
    first = engine.take(0.0)
    assert first is not None
    engine.await_acknowledgement()
    second = engine.take(0.0)
    assert second is not None
    assert second.record.offset == 2
    engine.complete(second)
    assert engine.take(0.0) is None
    engine.acknowledge(first)
    assert [r.offset for r in drain(engine)] == [1]


def test_a_task_of_an_old_assignment_completes_nothing_of_the_new_one() -> None:
    """Revoked and assigned again while a record runs: its end does not count, and its key waits for it."""
    engine = Engine("Key", WIDE, 10)
    engine.assign(P0, Ledger(0))
    engine.offer(P0, [record(0, 0, b"a")])
    old = engine.take(0.0)
    assert old is not None
    engine.revoke([P0])
    partition = engine.assign(P0, Ledger(0))
    engine.offer(P0, [record(0, 0, b"a")])
    assert engine.take(0.0) is None, "the key is held by the old task"
    engine.complete(old)
    assert partition.ledger.committable == 0
    assert [r.offset for r in drain(engine)] == [0]
    assert partition.ledger.committable == 1


@pytest.mark.proves(17)
def test_a_full_partition_is_paused_alone_and_resumed_below_half() -> None:
    """A partition at its bound is paused; the others are not; half of the bound resumes it."""
    engine = Engine("Unordered", Bounds(10, 1000, 10**6), 100)
    engine.assign(P0, Ledger(0))
    engine.assign(P1, Ledger(0))
    engine.offer(P0, [record(0, offset, None) for offset in range(9)])
    assert engine.flow().pause == []
    engine.offer(P0, [record(0, 9, None)])
    assert engine.flow().pause == [P0]
    tasks = [engine.take(0.0) for _ in range(5)]
    for task in tasks[:4]:
        assert task is not None
        engine.complete(task)
    assert engine.flow().resume == []
    assert tasks[4] is not None
    engine.complete(tasks[4])
    assert engine.flow().resume == [P0]


@pytest.mark.proves(5)
def test_bytes_bound_what_is_wanted() -> None:
    """Nothing more is wanted once the bytes' bound is reached, until a quarter of it is free."""
    engine = Engine("Unordered", Bounds(1000, 1000, 100), 100)
    engine.assign(P0, Ledger(0))
    engine.offer(P0, [record(0, offset, None) for offset in range(10)])
    assert not engine.flow().wanted
    for _ in range(3):
        task = engine.take(0.0)
        assert task is not None
        engine.complete(task)
    assert engine.flow().wanted


@pytest.mark.proves(8)
def test_a_map_that_is_nearly_full_holds_new_offsets_back_until_it_shrinks() -> None:
    """With many gaps over a wide span only offsets inside the map are handed out, and the rest once it is smaller."""
    engine = Engine("Unordered", WIDE, 100_000)
    partition = engine.assign(P0, Ledger(0))
    stuck: list[Task] = []
    offset = 0
    while partition.ledger.gaps <= map_bounds().gaps or partition.ledger.span <= map_bounds().span:
        engine.offer(P0, [record(0, offset, None)])
        task = engine.take(0.0)
        assert task is not None
        if offset % 40 == 0:
            stuck.append(task)
        else:
            engine.complete(task)
        offset += 1
    engine.offer(P0, [record(0, offset, None)])
    assert engine.take(0.0) is None
    for task in stuck:
        engine.complete(task)
    assert [r.offset for r in drain(engine)] == [offset]
    assert partition.ledger.committable == offset + 1


def test_a_record_held_back_is_handed_out_once_it_is_a_gap() -> None:
    """Held back for a full map, then passed by a later record that was running already: nothing may wait for ever."""
    engine = Engine("Key", WIDE, 10, maps=MapBounds(1, 3))
    engine.assign(P0, Ledger(0))
    keys = [b"a", b"x", b"b", b"y", b"a", b"c", b"d"]
    engine.offer(P0, [record(0, offset, key) for offset, key in enumerate(keys)])
    tasks = {task.record.offset: task for _ in range(6) if (task := engine.take(0.0)) is not None}
    assert sorted(tasks) == [0, 1, 2, 3, 5, 6]
    engine.offer(P0, [record(0, 7, b"e"), record(0, 8, b"f")])
    later = engine.take(0.0)
    assert later is not None
    for offset in (1, 3, 5):
        engine.complete(tasks[offset])
    assert engine.take(0.0) is None, "the map is full: offset 8 is held back"
    engine.complete(later)
    engine.complete(tasks[0])
    engine.complete(tasks[2])
    engine.complete(tasks[6])
    assert [r.offset for r in drain(engine)] == [4, 8]
    assert engine.partitions[P0].ledger.committable == 9


def test_a_failed_commit_is_planned_again() -> None:
    """What the broker refused is not forgotten; what it acknowledged is not sent twice."""
    engine = Engine("Key", WIDE, 10)
    engine.assign(P0, Ledger(0))
    engine.offer(P0, [record(0, 0, b"a")])
    drain(engine)
    plans = engine.commits()
    assert [plan.offset for plan in plans] == [1]
    assert engine.commits() == []
    engine.committed(plans, acknowledged=False)
    plans = engine.commits()
    assert [plan.offset for plan in plans] == [1]
    engine.committed(plans, acknowledged=True)
    assert engine.commits() == []
    assert engine.partitions[P0].committed == 1


def test_halted_hands_out_nothing() -> None:
    """Paused by its user, an engine keeps what it holds and hands out nothing."""
    engine = Engine("Key", WIDE, 10)
    engine.assign(P0, Ledger(0))
    engine.offer(P0, [record(0, 0, b"a")])
    engine.halted = True
    assert engine.take(0.0) is None
    assert engine.runnable == 0
    engine.halted = False
    assert engine.runnable == 1
    assert len(drain(engine)) == 1


def test_a_partition_that_comes_back_waits_for_its_old_record() -> None:
    """Under Partition ordering too, nothing runs beside a record of the assignment before."""
    engine = Engine("Partition", WIDE, 8)
    engine.assign(P0, Ledger(0))
    engine.offer(P0, [record(0, 0, b"a"), record(0, 1, b"b")])
    old = engine.take(0.0)
    assert old is not None
    engine.revoke([P0])
    engine.assign(P0, Ledger(0))
    engine.offer(P0, [record(0, 0, b"a")])
    assert engine.take(0.0) is None
    engine.complete(old)
    again = engine.take(0.0)
    assert again is not None
    assert again.record.offset == 0


def test_a_key_in_two_partitions_is_two_keys() -> None:
    """A partition that waits does not hold another: there is no order between them."""
    engine = Engine("Key", WIDE, 8)
    for key in (P0, P1):
        engine.assign(key, Ledger(0))
        engine.offer(key, [record(key.partition, 0, b"a")])
    assert engine.take(0.0) is not None
    assert engine.take(0.0) is not None


def test_a_log_that_begins_anew_is_handled_from_there() -> None:
    """A topic that is made again within an assignment: nothing of it counts as handled, and its place is committed at once."""
    engine = Engine("Key", WIDE, 10)
    old = engine.assign(P0, Ledger(), 7)
    assert not engine.offer(P0, [record(0, 0, b"a"), record(0, 1, b"b"), record(0, 2, b"a")])
    kept = engine.take(0.0)
    drain(engine)
    assert kept is not None
    planned = engine.commits()
    assert engine.offer(P0, [record(0, 3, b"d"), record(0, 0, b"a"), record(0, 1, b"c")])
    new = engine.partitions[P0]
    assert not old.live
    assert (new.live, new.assignment) == (True, 7)
    assert [(plan.source, plan.offset, plan.incomplete) for plan in engine.commits()] == [(new, 0, ())]
    engine.committed(planned, acknowledged=False)
    assert [r.offset for r in drain(engine)] == [1], "the old record of the key still runs"
    engine.complete(kept)
    assert [r.offset for r in drain(engine)] == [0]
    assert [plan.offset for plan in engine.commits()] == [2]
    assert engine.statistics().buffered == 0


def test_a_log_that_begins_anew_keeps_its_partition_paused() -> None:
    """The client still holds it back: it is asked to go on once there is room."""
    engine = Engine("Key", Bounds(2, 10, 1000), 10)
    engine.assign(P0, Ledger())
    engine.offer(P0, [record(0, 0, None), record(0, 1, None)])
    assert engine.flow().pause == [P0]
    engine.offer(P0, [record(0, 0, None)])
    assert engine.flow().resume == [P0]


def test_a_record_that_the_map_calls_complete_is_no_new_log() -> None:
    """It is skipped, and the assignment goes on, wherever in a batch it stands."""
    engine = Engine("Key", WIDE, 10)
    engine.assign(P0, Ledger(5, 8, [(5, 5)]))
    assert not engine.offer(P0, [record(0, 5, None), record(0, 6, None)])
    assert not engine.offer(P0, [record(0, 7, None), record(0, 8, None), record(0, 9, None)])
    assert [r.offset for r in drain(engine)] == [5, 9]
    assert engine.skipped == 3
