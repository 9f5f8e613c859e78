"""Which records exclude each other: at most one task of a shard is ready or running, the rest wait in offset order.

Keeps G3 (at most one record of a key in flight) for as long as the process lives: a shard stays held by a task of a
revoked partition until that task ends, even when the partition comes back meanwhile.
"""

from collections import deque
from collections.abc import Hashable
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

    __slots__ = ("attempt", "partition", "record", "shard", "started_at")

    def __init__(self, record: Record, partition: "Partition", shard: Hashable | None) -> None:
        self.record = record
        self.partition = partition
        self.shard = shard
        """None when the record excludes nothing."""
        self.attempt = 0
        """Calls of the handler so far, the present one included."""
        self.started_at = 0.0
        """When the present call began, monotonic seconds."""


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
    """Give the task's shard on. Return the task that may run next, skipping those of closed partitions."""
    shard = task.shard
    if shard is None:
        return None
    waiting = shards[shard]
    while waiting:
        following = waiting.popleft()
        if following.partition.open:
            if not waiting:
                shards[shard] = None
            return following
    del shards[shard]
    return None
