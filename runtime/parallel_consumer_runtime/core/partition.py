"""One assigned partition, for one assignment: its ledger, its bounds, its shards. The object itself is the fence.

A partition that is assigned again gets a new object, so a task of an old assignment can touch nothing of the new one.
"""

from collections import deque
from typing import NamedTuple

from parallel_consumer_runtime.core.ledger import Ledger, OffsetRange
from parallel_consumer_runtime.core.shards import Shards, Task


class PartitionKey(NamedTuple):
    """Topic and partition number."""

    topic: str
    partition: int


class PartitionCommit(NamedTuple):
    """What to commit for one partition."""

    source: "Partition"
    offset: int
    highest: int
    incomplete: tuple[OffsetRange, ...]


class Partition:
    """State of one assigned partition."""

    __slots__ = (
        "active",
        "assignment",
        "buffered",
        "buffered_bytes",
        "committed",
        "epoch",
        "key",
        "ledger",
        "live",
        "open",
        "parked",
        "paused",
        "shards",
        "throttled",
    )

    def __init__(self, key: PartitionKey, epoch: int, ledger: Ledger, shards: Shards, assignment: int = 0) -> None:
        self.key = key
        self.assignment = assignment
        """What its consumer calls this assignment."""
        self.epoch = epoch
        """The assignment that made it."""
        self.ledger = ledger
        self.shards = shards
        self.open = True
        """New tasks may be handed out."""
        self.live = True
        """Completions count. False for ever once it was revoked or lost."""
        self.paused = False
        """Not fetched from, because a bound is reached."""
        self.active = 0
        """Tasks with the handler, or waiting for the acknowledgement of what they produced."""
        self.buffered = 0
        """Records delivered and not complete."""
        self.buffered_bytes = 0
        self.parked: list[tuple[int, Task]] = []
        """A heap by offset: tasks held back because the commit's map is nearly full."""
        self.throttled: deque[Task] = deque()
        """Tasks whose turn it was while the partition's rate was used up."""
        self.committed: int | None = ledger.committable
        """The last acknowledged commit."""

    def regulate(self, records_max: int, bytes_max: int) -> bool:
        """Pause at a bound, resume at half of it. Return whether that changed something."""
        before = self.paused
        if not before:
            self.paused = self.buffered >= records_max or self.buffered_bytes >= bytes_max
        else:
            self.paused = self.buffered > records_max // 2 or self.buffered_bytes > bytes_max // 2
        return self.paused != before

    def plan(self) -> PartitionCommit | None:
        """Return what to commit now, None when nothing is known yet."""
        plan = self.ledger.plan()
        return None if plan is None else PartitionCommit(self, *plan)
