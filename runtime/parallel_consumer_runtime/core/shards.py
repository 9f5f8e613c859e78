"""Which records exclude each other: at most one task of a shard is ready or running, the rest wait in offset order.

Keeps G3 (at most one record of a key in flight) for as long as the process lives: a shard stays held by a task of a
revoked partition until that task ends, even when the partition comes back meanwhile. A shard belongs to one partition:
across partitions there is no order to keep, and one partition that waits must not hold another.
"""

from collections import deque
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from parallel_consumer_runtime.handlers import Record

if TYPE_CHECKING:
    from parallel_consumer_runtime.core.partition import Partition

SHARDING = ("Partition", "Key", "Unordered")
"""The orderings, in the manifest's words."""

Shards = dict[Hashable, "deque[Task] | None"]
"""Held shards: who waits behind the task that is ready or running; None when nobody does."""


class Task:
    """One record on its way: made when it is polled, gone when it is complete."""

    __slots__ = ("attempt", "group", "offered_at", "partition", "record", "shard", "started_at")

    def __init__(self, record: Record, partition: "Partition", shard: Hashable | None, offered_at: float = 0.0) -> None:
        self.record = record
        self.partition = partition
        self.shard = shard
        """None when the record excludes nothing."""
        self.attempt = 0
        """Calls of the handler so far, the present one included."""
        self.offered_at = offered_at
        """When it was polled, monotonic seconds."""
        self.started_at = 0.0
        """When the present call began, monotonic seconds."""
        self.group: Group | None = None
        """The tasks of its shard that run in the same call."""

    @property
    def argument(self) -> Record:
        """What the handler is called with."""
        return self.record


class Group:
    """Tasks of one shard that run in one call: the shard is given on when all of them have ended.

    Those that failed go back in offset order: the first waits for its attempt, the others wait behind it.
    """

    __slots__ = ("failed", "pending")

    def __init__(self, tasks: Sequence[Task]) -> None:
        self.pending = len(tasks)
        self.failed: list[tuple[int, float, Task]] = []
        """Offset, when it is due again, task."""
        for task in tasks:
            task.group = self


def admit(task: Task, shards: Shards) -> bool:
    """Take the task's shard. Return True when it may run, False when it waits behind another."""
    shard = task.shard
    if shard is None:
        return True
    if shard not in shards:
        shards[shard] = None
        return True
    waiting = shards[shard]
    if waiting is None:
        shards[shard] = deque((task,))
    else:
        waiting.append(task)
    return False


def release(task: Task, shards: Shards) -> Task | None:
    """Give the task's shard on. Return the task that may run next."""
    shard = task.shard
    if shard is None:
        return None
    waiting = shards[shard]
    if waiting is None:
        del shards[shard]
        return None
    following = waiting.popleft()
    if not waiting:
        shards[shard] = None
    return following


def waiting_behind(task: Task, shards: Shards) -> int:
    """Return how many tasks wait behind one that is ready or running."""
    waiting = None if task.shard is None else shards[task.shard]
    return len(waiting) if waiting else 0


def first_behind(task: Task, shards: Shards) -> Task | None:
    """Return the task that waits next behind one that is ready or running."""
    waiting = None if task.shard is None else shards[task.shard]
    return waiting[0] if waiting else None


def take_behind(task: Task, shards: Shards) -> None:
    """Take out what `first_behind` returned."""
    assert task.shard is not None
    waiting = shards[task.shard]
    assert waiting
    waiting.popleft()
    if not waiting:
        shards[task.shard] = None


def put_back(tasks: Sequence[Task], shards: Shards) -> None:
    """Let tasks of one held shard wait again, before all others, in the given order."""
    if not tasks:
        return
    shard = tasks[0].shard
    waiting = shards[shard]
    if waiting is None:
        waiting = shards[shard] = deque()
    waiting.extendleft(reversed(tasks))
