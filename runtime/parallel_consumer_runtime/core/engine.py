"""Offer, take, complete: the record's way between poll and commit.

Keeps G2 and G3 (one task of a shard at a time, in offset order), G6 (what a closed assignment does counts nowhere)
and every bound: a partition is paused at its own bound, all are at the sum's.
"""

import math
from collections import deque
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from operator import itemgetter

from parallel_consumer_runtime.core.batches import BatchShape, Linger
from parallel_consumer_runtime.core.figures import Bounds, EngineStatistics, Flow
from parallel_consumer_runtime.core.gates import Gates
from parallel_consumer_runtime.core.ledger import Ledger
from parallel_consumer_runtime.core.map_bounds import MapBounds, map_bounds
from parallel_consumer_runtime.core.partition import Partition, PartitionCommit, PartitionKey
from parallel_consumer_runtime.core.retries import DelayHeap
from parallel_consumer_runtime.core.shards import (
    Group,
    Shards,
    Task,
    admit,
    first_behind,
    put_back,
    release,
    take_behind,
    waiting_behind,
)
from parallel_consumer_runtime.core.subpartitions import ShardOf
from parallel_consumer_runtime.core.turnstile import Turnstile, Verdict
from parallel_consumer_runtime.handlers import Record

MAPS = map_bounds()


class Engine:
    """All assigned partitions of one member.

    Args:
        ordering: Partition, Key or Unordered.
        bounds: how much may wait or run.
        limit: tasks that may be with the handler at once.
        shard_of: what a record's shard is under Key ordering; None for its key.
        maps: how long a partition's map may become.
    """

    def __init__(
        self,
        ordering: str,
        bounds: Bounds,
        limit: int,
        *,
        shard_of: ShardOf | None = None,
        maps: MapBounds = MAPS,
    ) -> None:
        self.ordering = ordering
        self.bounds = bounds
        self.limit = limit
        self._shard_of = shard_of if ordering == "Key" else None
        self.maps = maps
        self.halted = False
        """Nothing is handed out: paused by its user, or closing."""
        self.outlet_full = False
        """Nothing is handed out: as much waits for its acknowledgement as may."""
        self.in_flight = 0
        """Tasks with the handler."""
        self.producing = 0
        """Tasks whose handler ended and whose results or dead letter are not acknowledged yet."""
        self.epoch = 0
        self.completed = 0
        self.skipped = 0
        self.wanted = True
        """Records may be offered: no bound of the whole is reached."""
        self.partitions: dict[PartitionKey, Partition] = {}
        self._buffered = 0
        self._buffered_bytes = 0
        self._ready: deque[Task] = deque()
        self.ignored = 0
        self._turnstile: Turnstile | None = None
        self._linger = Linger()
        self._retries = DelayHeap()
        self._shards: dict[PartitionKey, Shards] = {}
        """Held shards outlive an assignment: a task of it may still run when the partition comes back."""

    # Assignment

    def assign(self, key: PartitionKey, ledger: Ledger, assignment: int = 0) -> Partition:
        """Start a partition. Its records may be offered from now on.

        Args:
            key: which.
            ledger: where it starts.
            assignment: what its consumer calls this assignment.
        """
        if key in self.partitions:
            self.revoke([key])
        self.epoch += 1
        # What nobody holds any more, and is not ours, is forgotten here, where it costs no record anything.
        self._shards = {known: held for known, held in self._shards.items() if held or known in self.partitions}
        shards = self._shards.setdefault(key, {})
        partition = self.partitions[key] = Partition(key, self.epoch, ledger, shards, assignment)
        return partition

    def close(self, keys: Iterable[PartitionKey]) -> None:
        """Hand out nothing more of these partitions; what is active may still complete."""
        keys = list(keys)
        for key in keys:
            if (partition := self.partitions.get(key)) is not None:
                partition.open = False
                # Behind a record that never ends, what waits would pile up with each assignment.
                partition.shards.update(dict.fromkeys(partition.shards))
        ended = self._retries.remove_closed()
        if self._turnstile is not None:
            ended += self._turnstile.remove_closed()
        for task in ended:
            self._release(task)
        kept = deque(task for task in self._ready if task.partition.open)
        closed = [task for task in self._ready if not task.partition.open]
        for key in keys:
            if (partition := self.partitions.get(key)) is not None:
                closed.extend(task for _, task in partition.parked)
                partition.parked.clear()
                closed.extend(partition.throttled)
                partition.throttled.clear()
        self._ready = kept
        for task in closed:
            self._release(task)

    def revoke(self, keys: Iterable[PartitionKey]) -> None:
        """End these partitions: nothing of them counts any more."""
        keys = list(keys)
        self.close(keys)
        for key in keys:
            if (partition := self.partitions.pop(key, None)) is not None:
                partition.live = False
                self._buffered -= partition.buffered
                self._buffered_bytes -= partition.buffered_bytes
        self.epoch += 1

    def active(self, keys: Iterable[PartitionKey]) -> int:
        """Return how many tasks of these partitions are with the handler or wait for an acknowledgement."""
        return sum(self.partitions[key].active for key in keys if key in self.partitions)

    # The path of a record

    def offer(self, key: PartitionKey, records: Sequence[Record], now: float = 0.0) -> bool:
        """Take records of one partition, in offset order. Those of partitions that are not ours are dropped.

        Return whether the log had begun anew: see `_begin_anew`.
        """
        partition = self.partitions.get(key)
        if partition is None or not partition.open:
            return False
        deliver, delivered = partition.ledger.deliver, partition.ledger.delivered
        shards = partition.shards
        ready = self._ready
        shard_of = self._shard_of
        keyed, single = self.ordering == "Key" and shard_of is None, self.ordering == "Partition"
        size_bytes = accepted = 0
        anew: int | None = None
        for index, record in enumerate(records):
            if not deliver(record.offset):
                if record.offset <= (records[index - 1].offset if index else delivered):
                    anew = index
                    break
                self.skipped += 1
                continue
            accepted += 1
            size_bytes += len(record.key or b"") + len(record.value or b"")
            shard = record.key if keyed else key if single else None if shard_of is None else shard_of(record)
            task = Task(record, partition, shard, now)
            if admit(task, shards):
                ready.append(task)
        partition.buffered += accepted
        partition.buffered_bytes += size_bytes
        self._buffered += accepted
        self._buffered_bytes += size_bytes
        if anew is None:
            return False
        self._begin_anew(partition, records[anew].offset)
        self.offer(key, records[anew:], now)
        return True

    def take(self, now: float) -> Task | None:
        """Return the next task to run, None when none may run now."""
        if self.in_flight >= self.limit or self.halted or self.outlet_full:
            return None
        turnstile = self._turnstile
        if turnstile is not None and not turnstile.open(now):
            return None
        ready = self._ready
        while ready:
            task = ready.popleft()
            partition = task.partition
            ledger = partition.ledger
            if ledger.gaps > self.maps.gaps and self.maps.hold(task.record.offset, ledger):
                heappush(partition.parked, (task.record.offset, task))
                continue
            if turnstile is not None and (verdict := turnstile.admit(task, now)) is not Verdict.START:
                if verdict is Verdict.IGNORE:
                    self._ignore(task)
                continue
            self._start(task, now)
            return task
        return None

    def take_batch(self, shape: BatchShape, now: float) -> list[Task]:
        """Return the tasks of the next call, none when there is nothing to call now. Each is settled by itself."""
        room = min(shape.size, self.limit - self.in_flight)
        if room < 1 or self.halted or self.outlet_full or not self._ready:
            return []
        available = len(self._ready)
        if shape.same_key:
            head = self._ready[0]
            available = 1 + waiting_behind(head, head.partition.shards)
        if not self._linger.over(min(available, room), min(shape.least, self.limit), shape.linger_s, now):
            return []
        tasks: list[Task] = []
        while len(tasks) < room and (task := self.take(now)) is not None:
            tasks.append(task)
            if shape.same_key:
                self._take_behind(tasks, room, now)
                break
        return tasks

    def complete(self, task: Task) -> None:
        """The handler ended and nothing was produced: the record is done."""
        self.in_flight -= 1
        self._settle(task)

    def await_acknowledgement(self) -> None:
        """A handler ended; its results are on their way. The key stays held, the handler's place is free."""
        self.in_flight -= 1
        self.producing += 1

    def acknowledge(self, task: Task) -> None:
        """What the task produced was acknowledged: the record is done."""
        self.producing -= 1
        self._settle(task)

    def retry(self, task: Task, due: float, *, produced: bool = False) -> None:
        """Let the task wait for another attempt; its shard stays held.

        Args:
            task: whose attempt failed.
            due: when it may run again.
            produced: it failed while its results were on their way, not in the handler.
        """
        if produced:
            self.producing -= 1
        else:
            self.in_flight -= 1
        task.partition.active -= 1
        if not task.partition.open:
            self._release(task)
        elif task.group is not None:
            task.group.failed.append((task.record.offset, due, task))
            self._release(task)
        else:
            self._retries.push(due, task)

    def set_gates(self, gates: Gates) -> None:
        """Replace the gates; what waits at the old ones is looked at anew."""
        if self._turnstile is not None:
            self._ready.extendleft(reversed(self._turnstile.empty(self.partitions.values())))
        self._turnstile = Turnstile(gates) if gates.needed else None

    def wake_retries(self, now: float) -> int:
        """Make tasks ready whose time has come, before all others. Return how many."""
        due = self._retries.pop_due(now)
        if self._turnstile is not None:
            due += self._turnstile.wake(now)
        self._ready.extendleft(reversed(due))
        return len(due)

    @property
    def next_retry_at(self) -> float | None:
        """When `wake_retries` or `take` has something to do that it has not now, None when nothing waits."""
        due = self._retries.next_due
        earliest = math.inf if due is None else due
        runnable = self.runnable > 0
        if self._turnstile is not None:
            earliest = min(earliest, self._turnstile.next_at(runnable=runnable))
        if runnable and self._linger.until is not None:
            earliest = min(earliest, self._linger.until)
        return None if earliest == math.inf else earliest

    @property
    def runnable(self) -> int:
        """How many tasks could start now."""
        return 0 if self.halted or self.outlet_full else max(0, min(len(self._ready), self.limit - self.in_flight))

    # Commits and bounds

    def commits(self, keys: Iterable[PartitionKey] | None = None) -> list[PartitionCommit]:
        """Return what changed since the last call and may be committed."""
        chosen = (
            self.partitions.values() if keys is None else [self.partitions[k] for k in keys if k in self.partitions]
        )
        return [plan for partition in chosen if partition.ledger.dirty and (plan := partition.plan()) is not None]

    def committed(self, commits: Iterable[PartitionCommit], *, acknowledged: bool) -> None:
        """Note the outcome of commits; what failed is planned again."""
        for commit in commits:
            if not acknowledged:
                commit.source.ledger.dirty = True
            elif commit.source.committed is None or commit.offset > commit.source.committed:
                commit.source.committed = commit.offset

    def final_commits(self, keys: Iterable[PartitionKey]) -> list[PartitionCommit]:
        """Return everything that may be committed, changed or not: the last word before partitions are given up."""
        chosen = [self.partitions[key] for key in keys if key in self.partitions]
        return [plan for partition in chosen if (plan := partition.plan()) is not None]

    def flow(self) -> Flow:
        """Return what to fetch and what not. Called after every batch, and often while records complete.

        What is fetched from holds together at half of what it may buffer alone, so that even load never pauses a partition (a
        pause throws away what was fetched ahead); one that fills alone is paused alone, and holds up no other.
        """
        bounds = self.bounds
        pause, resume = list[PartitionKey](), list[PartitionKey]()
        count = records = size_bytes = 0
        for key, partition in self.partitions.items():
            if partition.regulate(bounds.records_per_partition, bounds.bytes_per_partition):
                (pause if partition.paused else resume).append(key)
            if not partition.paused:
                count += 1
                records += partition.buffered
                size_bytes += partition.buffered_bytes
        share = 1.0 if self.wanted else 0.75
        self.wanted = (
            self._buffered < bounds.records * share
            and self._buffered_bytes < bounds.bytes * share
            and records < max(1, count * bounds.records_per_partition // 2) * share
            and size_bytes < max(1, count * bounds.bytes_per_partition // 2) * share
        )
        return Flow(pause, resume, self.wanted)

    def statistics(self) -> EngineStatistics:
        """Return one consistent view of the counters."""
        return EngineStatistics(
            in_flight=self.in_flight,
            producing=self.producing,
            ready=len(self._ready),
            retrying=len(self._retries),
            gated=0 if self._turnstile is None else self._turnstile.waiting(self.partitions.values()),
            ignored=self.ignored,
            buffered=self._buffered,
            buffered_bytes=self._buffered_bytes,
            completed=self.completed,
            skipped=self.skipped,
            parked=sum(len(partition.parked) for partition in self.partitions.values()),
            paused_partitions=sum(partition.paused for partition in self.partitions.values()),
        )

    def _settle(self, task: Task) -> None:
        partition = task.partition
        partition.active -= 1
        if partition.live:
            record = task.record
            size_bytes = len(record.key or b"") + len(record.value or b"")
            partition.ledger.complete(record.offset)
            partition.buffered -= 1
            partition.buffered_bytes -= size_bytes
            self._buffered -= 1
            self._buffered_bytes -= size_bytes
            self.completed += 1
            if partition.parked:
                self._unpark(partition)
        self._release(task)

    def _release(self, task: Task) -> None:
        if task.group is not None and not self._leave(task, task.group):
            return
        if (following := release(task, task.partition.shards)) is not None:
            self._ready.append(following)

    def _leave(self, task: Task, group: Group) -> bool:
        """Take a task out of its group. Return whether their shard is free: all have ended, and none failed."""
        group.pending -= 1
        task.group = None
        if group.pending:
            return False
        if not group.failed or not task.partition.open:
            return True
        group.failed.sort(key=itemgetter(0))
        (_, due, first), *others = group.failed
        for _, _, other in group.failed:
            other.group = None
        put_back([other for _, _, other in others], task.partition.shards)
        self._retries.push(due, first)
        return False

    def _take_behind(self, tasks: list[Task], room: int, now: float) -> None:
        """Add to a batch what waits in its shard, as long as it may start too."""
        head = tasks[0]
        partition, turnstile = head.partition, self._turnstile
        while len(tasks) < room and (task := first_behind(head, partition.shards)) is not None:
            if partition.ledger.gaps > self.maps.gaps and self.maps.hold(task.record.offset, partition.ledger):
                break
            if turnstile is not None:
                if not turnstile.open(now) or turnstile.judge(task, now) is not Verdict.START:
                    break
                turnstile.spend(task, now)
            take_behind(head, partition.shards)
            self._start(task, now)
            tasks.append(task)
        if len(tasks) > 1:
            Group(tasks)

    def _begin_anew(self, partition: Partition, first: int) -> None:
        """Start a partition again at an offset that was passed before: its log is another one, or was cut.

        A topic that is deleted and made again keeps its partitions assigned, if that is done fast enough, and the client goes on
        at the log's start. What the old log's offsets were says nothing of the new one's records. The new place is
        committed at once: what is committed now would skip records.
        """
        ledger = Ledger(first)
        ledger.dirty = True
        paused = partition.paused
        self.assign(partition.key, ledger, partition.assignment).paused = paused

    def _start(self, task: Task, now: float) -> None:
        self.in_flight += 1
        task.partition.active += 1
        task.attempt += 1
        task.started_at = now

    def _ignore(self, task: Task) -> None:
        self.ignored += 1
        task.partition.active += 1
        self._settle(task)

    def _unpark(self, partition: Partition) -> None:
        """Hand out again what the map has room for by now."""
        ledger, parked = partition.ledger, partition.parked
        freed: list[Task] = []
        # A record above may have completed since: then this one is a gap, and all behind it wait for it.
        while parked and self.maps.free(parked[0][0], ledger):
            freed.append(heappop(parked)[1])
        self._ready.extendleft(reversed(freed))
