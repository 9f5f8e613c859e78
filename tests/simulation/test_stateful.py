"""The engine as a state machine, for Hypothesis: fewer faults than the simulation knows, and failures shrink to a few calls."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from parallel_consumer_runtime.core import Bounds, Engine, Ledger, PartitionKey, Task
from parallel_consumer_runtime.core.map_bounds import MapBounds
from parallel_consumer_runtime.handlers import Record
from parallel_consumer_runtime.offsets import OffsetMap, decode, encode_within

PARTITIONS = [PartitionKey("t", 0), PartitionKey("t", 1)]
KEYS = [b"a", b"b", b"c", None]
AN_ENGINE = Bounds(100, 100, 10_000)


class EngineMachine(RuleBasedStateMachine):
    """One member, two partitions, a broker that keeps commits, and a set of what is truly done."""

    def __init__(self) -> None:
        super().__init__()
        self.ordering = "Key"
        self.engine = Engine("Key", AN_ENGINE, 3)
        self.now = 0.0
        self.logs: dict[PartitionKey, list[Record]] = {key: [] for key in PARTITIONS}
        self.positions: dict[PartitionKey, int] = {}
        self.stored: dict[PartitionKey, tuple[int, str]] = {}
        self.done: dict[PartitionKey, set[int]] = {key: set() for key in PARTITIONS}
        self.begun: dict[Task, None] = {}
        """Tasks of present assignments that began and are not done."""
        self.running: list[Task] = []
        self.producing: list[Task] = []

    @initialize(
        ordering=st.sampled_from(["Key", "Partition", "Unordered"]),
        gaps=st.sampled_from([0, 1, 256]),
        limit=st.integers(1, 4),
    )
    def make(self, ordering: str, gaps: int, limit: int) -> None:
        self.ordering = ordering
        self.engine = Engine(ordering, AN_ENGINE, limit, maps=MapBounds(gaps, 2 if gaps < 256 else 16_000))
        for key in PARTITIONS:
            self.assign_or_revoke(key, 4096)

    @rule(key=st.sampled_from(PARTITIONS), metadata_max=st.sampled_from([8, 4096]))
    def assign_or_revoke(self, key: PartitionKey, metadata_max: int) -> None:
        if key not in self.positions:
            offset, metadata = self.stored.get(key, (-1, ""))
            ledger = Ledger()
            if offset >= 0:
                known = decode(metadata, offset, log_end=self._end(key))
                ledger = Ledger(offset, known.highest if metadata else None, known.incomplete)
            self.engine.assign(key, ledger)
            self.positions[key] = max(0, offset)
            return
        self.engine.close([key])
        self._commit(key, metadata_max)
        self.engine.revoke([key])
        self.begun = {task: None for task in self.begun if task.partition.live}
        del self.positions[key]

    @precondition(lambda self: bool(self.positions))
    @rule(data=st.data(), keys=st.lists(st.sampled_from(KEYS), min_size=1, max_size=8), hole=st.sampled_from([0, 0, 3]))
    def produce_and_offer(self, data: st.DataObject, keys: list[bytes | None], hole: int) -> None:
        key = data.draw(st.sampled_from(sorted(self.positions)))
        for record_key in keys:
            self.logs[key].append(Record(*key, self._end(key) + hole, record_key, b"v", -1, ()))
        records = [record for record in self.logs[key] if record.offset >= self.positions[key]]
        self.positions[key] = self._end(key)
        self.engine.offer(key, records)

    @rule()
    def take(self) -> None:
        while (task := self.engine.take(self.now)) is not None:
            assert task.partition.open
            assert task.record.offset not in self.done[task.partition.key] or task.attempt == 1
            assert len(self.running) < self.engine.limit
            shard = self._shard(task)
            if shard is not None:
                assert all(self._shard(other) != shard for other in (*self.running, *self.producing))
                assert all(
                    self._shard(other) != shard for other in self.begun if other.record.offset < task.record.offset
                )
            self.running.append(task)
            self.begun[task] = None

    @precondition(lambda self: bool(self.running))
    @rule(data=st.data(), how=st.sampled_from(["done", "results", "retry"]))
    def end(self, data: st.DataObject, how: str) -> None:
        task = self.running.pop(data.draw(st.integers(0, len(self.running) - 1)))
        if how == "done":
            self._done(task)
            self.engine.complete(task)
        elif how == "results":
            self.engine.await_acknowledgement()
            self.producing.append(task)
        else:
            self.engine.retry(task, self.now + 1.0)

    @precondition(lambda self: bool(self.producing))
    @rule(data=st.data(), acknowledged=st.booleans())
    def report(self, data: st.DataObject, *, acknowledged: bool) -> None:
        task = self.producing.pop(data.draw(st.integers(0, len(self.producing) - 1)))
        if acknowledged:
            self._done(task)
            self.engine.acknowledge(task)
        else:
            self.engine.retry(task, self.now + 1.0, produced=True)

    @rule()
    def wait(self) -> None:
        self.now += 1.0
        self.engine.wake_retries(self.now)

    @rule(acknowledged=st.booleans())
    def commit(self, *, acknowledged: bool) -> None:
        commits = self.engine.commits()
        if acknowledged:
            for commit in commits:
                self._store(commit.source.key, OffsetMap(*commit[1:]), 4096)
        self.engine.committed(commits, acknowledged=acknowledged)

    @invariant()
    def counts_agree(self) -> None:
        now = self.engine.statistics()
        assert (now.in_flight, now.producing) == (len(self.running), len(self.producing))
        assert now.buffered == sum(partition.buffered for partition in self.engine.partitions.values())
        assert now.buffered >= now.ready >= 0

    def teardown(self) -> None:
        """Without anything going wrong any more, all of it becomes done and committed."""
        for key in PARTITIONS:
            if key not in self.positions:
                self.assign_or_revoke(key, 4096)
        for key in PARTITIONS:
            self.engine.offer(key, [record for record in self.logs[key] if record.offset >= self.positions[key]])
        for _ in range(3 + sum(map(len, self.logs.values()))):
            self.wait()
            self.take()
            for task in [*self.running]:
                self.running.remove(task)
                self._done(task)
                self.engine.complete(task)
            for task in [*self.producing]:
                self.producing.remove(task)
                self._done(task)
                self.engine.acknowledge(task)
        self.commit(acknowledged=True)
        assert all(record.offset in self.done[key] for key in PARTITIONS for record in self.logs[key])
        assert all(self.stored.get(key, (0, ""))[0] == self._end(key) for key in PARTITIONS)
        left = self.engine.statistics()
        assert sum((left.in_flight, left.producing, left.ready, left.retrying, left.buffered)) == 0
        assert not any(self.engine._shards.values())  # pyright: ignore[reportPrivateUsage]

    def _done(self, task: Task) -> None:
        self.done[task.partition.key].add(task.record.offset)
        self.begun.pop(task, None)

    def _commit(self, key: PartitionKey, metadata_max: int) -> None:
        for commit in self.engine.final_commits([key]):
            self._store(key, OffsetMap(*commit[1:]), metadata_max)

    def _store(self, key: PartitionKey, known: OffsetMap, metadata_max: int) -> None:
        assert all(record.offset in self.done[key] for record in self.logs[key] if record.offset < known.base)
        assert known.base >= self.stored.get(key, (0, ""))[0]
        metadata = encode_within(known, metadata_max)[0] if known.incomplete else ""
        self.stored[key] = (known.base, metadata)

    def _end(self, key: PartitionKey) -> int:
        return self.logs[key][-1].offset + 1 if self.logs[key] else 0

    def _shard(self, task: Task) -> tuple[PartitionKey, bytes | None] | None:
        if self.ordering == "Unordered" or (self.ordering == "Key" and task.record.key is None):
            return None
        return task.partition.key, task.record.key if self.ordering == "Key" else None


TestEngine = EngineMachine.TestCase
TestEngine.settings = settings(max_examples=150, stateful_step_count=40, deadline=None, derandomize=True)
