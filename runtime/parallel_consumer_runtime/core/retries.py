"""Records that wait for a time: a heap by due time, and the backoff that fills it."""

import heapq
import math
from itertools import count
from typing import NamedTuple

from parallel_consumer_runtime.core.shards import Task

_EXPONENT_MAX = 60


class RetryPolicy(NamedTuple):
    """Exponential backoff, doubled for each attempt."""

    max_attempts: int
    """0 is without end."""
    initial_backoff_s: float
    max_backoff_s: float

    def exhausted(self, attempt: int) -> bool:
        """Whether this was the last attempt."""
        return bool(self.max_attempts) and attempt >= self.max_attempts

    def backoff_s(self, attempt: int, jitter: float) -> float:
        """Return the wait after the given attempt (1-based), in seconds.

        Args:
            attempt: calls so far.
            jitter: a random number in [0, 1), from the caller: spreads records that failed together over the upper
                half of the wait ("equal jitter", AWS Architecture Blog, Exponential Backoff And Jitter).
        """
        full = min(self.max_backoff_s, self.initial_backoff_s * 2.0 ** min(attempt - 1, _EXPONENT_MAX))
        return full * (0.5 + jitter / 2)


class DelayHeap:
    """Tasks by the time at which they may run again. Bounded by the partitions' buffers, which count them."""

    __slots__ = ("_heap", "_sequence")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Task]] = []
        self._sequence = count()

    def __len__(self) -> int:
        """Return how many wait."""
        return len(self._heap)

    @property
    def next_due(self) -> float | None:
        """When the first may run; None when none waits."""
        return self._heap[0][0] if self._heap else None

    def push(self, due: float, task: Task) -> None:
        """Let the task wait until the given time."""
        heapq.heappush(self._heap, (due, next(self._sequence), task))

    def pop_due(self, now: float) -> list[Task]:
        """Return the tasks whose time has come, the earliest first."""
        due: list[Task] = []
        while self._heap and self._heap[0][0] <= now:
            due.append(heapq.heappop(self._heap)[2])
        return due

    def pop_all(self) -> list[Task]:
        """Return all tasks, the earliest first."""
        return self.pop_due(math.inf)

    def remove_closed(self) -> list[Task]:
        """Take out and return the tasks of partitions that hand out nothing any more."""
        closed = [entry[2] for entry in self._heap if not entry[2].partition.open]
        self._heap = [entry for entry in self._heap if entry[2].partition.open]
        heapq.heapify(self._heap)
        return closed
