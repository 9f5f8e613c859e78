"""The guarantees as objects, each told of what happens as it happens, and each raising at the first breach.

The same guarantees and words as `tests.support.checkers`, which reads whole histories; these are incremental, because a
run of three hundred steps may take a few milliseconds, not more.
"""

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING

from parallel_consumer_runtime.core import PartitionKey, Task
from parallel_consumer_runtime.core.map_bounds import METADATA_SIZE_MAX
from tests.support.simulation.failure import Anomaly, Broken
from tests.support.simulation.log import Log

if TYPE_CHECKING:
    from tests.support.simulation.group import Entry, Stored
    from tests.support.simulation.member import Member

OUTSTANDING = 3
"""Batches that may arrive after a bound was reached: two between the threads, and the one that reaches it."""


class Tenure:
    """What is known of one assignment in one process, and of one log that it read, beside the engine's own state."""

    __slots__ = (
        "before",
        "blind",
        "done",
        "finished",
        "last",
        "log",
        "settled_epoch",
        "settled_to",
        "started",
        "told",
        "unfinished",
    )

    def __init__(self, log: Log, *, blind: bool, before: "Tenure | None" = None) -> None:
        self.log = log
        self.before = before
        """Of the same assignment, and of the log that it read before this one."""
        self.blind = blind
        """The commit's map could not be read."""
        self.told = 0 if blind else log.settlements
        """How many commits of the log had been applied when its process read the last one."""
        self.finished: set[int] = set()
        # Of the whole assignment: its offsets go on rising, or the engine begins another one.
        self.done: list[tuple[Tenure, int]] = [] if before is None else before.done
        """Offsets in the order in which they were done while the assignment counted."""
        self.started: set[int] = set() if before is None else before.started
        self.last: dict[Hashable, int] = {} if before is None else before.last
        """The highest offset of a shard that was started."""
        self.unfinished: dict[Hashable, set[int]] = {} if before is None else before.unfinished
        """Offsets of a shard that were started and are not done."""
        self.settled_to = 0
        self.settled_epoch = log.settled_epoch

    def of(self, life: object) -> "Tenure":
        """Return what is known of the log with such a life."""
        tenure = self
        while tenure.log.life != life and tenure.before is not None:
            tenure = tenure.before
        return tenure


def shard_of(task: Task, ordering: str) -> Hashable | None:
    """Return what the record may not run beside, decided here and not by the engine; None when nothing."""
    if ordering == "Key":
        return task.record.key
    return "all" if ordering == "Partition" else None


class NoZombies:
    """G6: nothing is begun, and nothing committed, for a partition that was given up."""

    @staticmethod
    def started(tasks: Sequence[Task]) -> None:
        """Handlers are about to be called."""
        for task in tasks:
            if not (task.partition.open and task.partition.live):
                raise Broken(Anomaly.ZOMBIE, f"{name(task)} began after its partition was given up")

    @staticmethod
    def sent(member: "Member", entries: Sequence["Entry"]) -> None:
        """A commit leaves the process."""
        for entry in entries:
            key = entry.commit.source.key
            if key not in member.positions:
                raise Broken(Anomaly.ZOMBIE, f"{member.name} commits {key}, which it gave up")


class NothingTwice:
    """G4: what a commit told of is not handled again, nor is what this assignment has done; and nothing is invented."""

    @staticmethod
    def started(task: Task, tenure: Tenure) -> None:
        """A handler is about to be called."""
        log, offset = tenure.log, task.record.offset
        if offset in tenure.finished:
            raise Broken(Anomaly.DUPLICATE, f"{name(task)} began again after it was done in the same assignment")
        if log.settled.get(offset, tenure.told + 1) <= tenure.told:
            raise Broken(Anomaly.DUPLICATE, f"{name(task)} began again, and a commit had said that it was done")
        if (record := log.slots[offset]) is not None and record is not task.record:
            raise Broken(Anomaly.PHANTOM, f"{name(task)} was never produced like this")


class HandedOver:
    """G4: what was done before a clean revocation or end is told to whoever comes next."""

    @staticmethod
    def given_up(member: "Member", keys: Iterable[PartitionKey]) -> None:
        """Partitions were drained in time, and nothing was done to the last commit."""
        group, logs = member.world.group, member.world.logs
        if (
            group.members.get(member.number) is not member
            or member.generation != group.generation
            or member.metadata_size_max < METADATA_SIZE_MAX
        ):
            return
        for key in keys:
            partition = member.engine.partitions.get(key)
            tenure = None if partition is None else member.tenures[partition]
            if tenure is not None and tenure.log is logs[key] and not tenure.finished <= tenure.log.settled.keys():
                untold = sorted(tenure.finished - tenure.log.settled.keys())
                raise Broken(Anomaly.DUPLICATE, f"{key}: given up, and no commit tells that {untold} are done")


class KeyOrder:
    """G2: the records of a shard begin in offset order, and none while one below it is not done."""

    @staticmethod
    def started(tasks: Sequence[Task], tenure: Tenure, shard: Hashable, ignored: bytes | None) -> None:
        """Handlers of one shard are about to be called, together. What may be ignored may end without a call."""
        unfinished = tenure.unfinished.setdefault(shard, set())
        together = {task.record.offset for task in tasks}
        last = tenure.last.get(shard, -1)
        for task in tasks:
            offset = task.record.offset
            if offset < last and offset not in tenure.started:
                raise Broken(Anomaly.NONMONOTONIC, f"{name(task)} began after {last} of the same key")
            if before := [other for other in unfinished if other < offset and other not in together]:
                raise Broken(Anomaly.NONMONOTONIC, f"{name(task)} began, and {before} of the same key are not done")
            last = max(last, offset)
        tenure.last[shard] = last
        unfinished.update(task.record.offset for task in tasks if ignored is None or task.record.key != ignored)


class OneAtATime:
    """G3: in one process, at most one call for a shard of a partition, whichever assignment it belongs to."""

    def __init__(self) -> None:
        self.running: dict[tuple[Hashable, Hashable], int] = {}
        """How many records of the shard's one call have not ended."""

    def started(self, tasks: Sequence[Task], shard: Hashable) -> None:
        """Handlers of one shard are about to be called, together."""
        place = (tasks[0].partition.key, shard)
        if place in self.running:
            raise Broken(Anomaly.OVERLAP, f"{name(tasks[0])} began while another of the same key ran")
        self.running[place] = len(tasks)

    def ended(self, task: Task, shard: Hashable) -> None:
        """One of them ended, and everything that it produced with it."""
        place = (task.partition.key, shard)
        if self.running[place] == 1:
            del self.running[place]
        else:
            self.running[place] -= 1


class NothingLost:
    """G1: no commit passes a record that is not done."""

    @staticmethod
    def applied(entry: "Entry") -> None:
        """The broker took a commit."""
        log, offset, done = entry.tenure.log, entry.position.offset, entry.tenure.log.done
        if offset > max(log.end, log.mistaken):
            raise Broken(Anomaly.LOST, f"{log.key}: the commit {offset} is beyond the log's end {log.end}")
        for passed in range(log.checked, min(offset, log.end)):
            if log.slots[passed] is not None and passed not in done:
                raise Broken(Anomaly.LOST, f"{log.key}: the commit {offset} passed {passed}, which is not done")
        log.checked = max(log.checked, min(offset, log.end))


class CommitsGoForward:
    """G5: the committed offset of a log never goes back."""

    @staticmethod
    def applied(entry: "Entry", stored: "Stored | None") -> None:
        """The broker is about to take a commit."""
        log, offset = entry.tenure.log, entry.position.offset
        if stored is not None and stored.log is log and offset < stored.offset:
            raise Broken(Anomaly.COMMIT_BACK, f"{log.key}: the commit went back from {stored.offset} to {offset}")


class Bounded:
    """No more waits, and no more runs, than is allowed."""

    @staticmethod
    def offered(member: "Member") -> None:
        """A batch was taken in."""
        plan, engine = member.world.plan, member.engine
        slack = OUTSTANDING * plan.batch_max - 1
        allowed = max(engine.bounds.records_per_partition, member.buffered_before) + slack
        for key, partition in engine.partitions.items():
            if not 0 <= partition.buffered <= allowed:
                raise Broken(Anomaly.BOUNDS, f"{key} buffers {partition.buffered}, allowed are {allowed}")
        buffered = engine.statistics().buffered
        allowed = max(engine.bounds.records, member.buffered_before) + slack
        if not 0 <= buffered <= allowed:
            raise Broken(Anomaly.BOUNDS, f"{member.name} buffers {buffered}, allowed are {allowed}")

    @staticmethod
    def started(member: "Member") -> None:
        """A call begins."""
        if not 0 < member.engine.in_flight <= member.engine.limit:
            raise Broken(Anomaly.BOUNDS, f"{member.engine.in_flight} in flight, allowed are {member.engine.limit}")


class NothingLeaks:
    """When all is done the engine is empty."""

    @staticmethod
    def idle(member: "Member") -> str:
        """Return what is left, nothing when nothing is."""
        engine = member.engine
        now = engine.statistics()
        left = {
            "in flight": now.in_flight,
            "producing": now.producing,
            "ready": now.ready,
            "retrying": now.retrying,
            "gated": now.gated,
            "buffered": now.buffered,
            "bytes buffered": now.buffered_bytes,
            "parked": sum(len(partition.parked) for partition in engine.partitions.values()),
            "active": sum(partition.active for partition in engine.partitions.values()),
            "shards held": sum(len(shards) for shards in engine._shards.values()),  # pyright: ignore[reportPrivateUsage]
        }
        return ", ".join(f"{what} {count}" for what, count in left.items() if count)


def name(task: Task) -> str:
    """Return where the task's record is."""
    record = task.record
    return f"{record.topic}[{record.partition}]@{record.offset}"
