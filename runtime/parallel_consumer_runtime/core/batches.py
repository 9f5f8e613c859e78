"""What a batch is to look like, and whether it is time for one. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from parallel_consumer_runtime.core.shards import Task
from parallel_consumer_runtime.handlers import Record


class BatchShape(NamedTuple):
    """How many records one call of the handler gets."""

    size: int
    """At most so many."""
    least: int = 1
    """Fewer only when the first of them waited for `linger_s`."""
    linger_s: float = 0.0
    same_key: bool = False
    """All of one shard: of one key, or of one partition, by the ordering."""


class Batch:
    """The tasks of one call. Each is settled by itself."""

    __slots__ = ("argument", "tasks")

    def __init__(self, tasks: Sequence[Task]) -> None:
        self.tasks = tasks
        """At least one."""
        self.argument: list[Record] = [task.record for task in tasks]
        """What the handler is called with."""

    @property
    def attempt(self) -> int:
        """The highest of its tasks' attempts."""
        return max(task.attempt for task in self.tasks)

    @property
    def started_at(self) -> float:
        """When the call began, monotonic seconds."""
        return self.tasks[0].started_at


class Linger:
    """Remembers since when records wait for others to make a batch."""

    __slots__ = ("until",)

    def __init__(self) -> None:
        self.until: float | None = None
        """When the waiting ends, None when nobody waits."""

    def over(self, available: int, least: int, linger_s: float, now: float) -> bool:
        """Return whether a batch is to be made of what is available now. Something is."""
        if available >= least:
            self.until = None
            return True
        if self.until is None:
            self.until = now + linger_s
        if now < self.until:
            return False
        self.until = None
        return True
