"""Where tasks wait whose turn it is and that may not start yet: for their time, for their key's rate, for their partition's.

Keeps: a throttled partition has exactly one entry in the heap while tasks of it wait, so that waking costs what it frees.
"""

import math
from collections.abc import Iterable
from enum import Enum, auto
from heapq import heappop, heappush

from parallel_consumer_runtime.core.gates import IGNORE, Gates
from parallel_consumer_runtime.core.partition import Partition
from parallel_consumer_runtime.core.retries import DelayHeap
from parallel_consumer_runtime.core.shards import Task


class Verdict(Enum):
    """What becomes of a task whose turn it is."""

    START = auto()
    WAIT = auto()
    """It waits here, or it is not ours to start now."""
    IGNORE = auto()
    """It is complete without a call."""


class Turnstile:
    """Lets tasks through one at a time, or keeps them until `wake` returns them.

    Args:
        gates: what to ask.
    """

    def __init__(self, gates: Gates) -> None:
        self._gates = gates
        self._gated = DelayHeap()
        self._throttled: list[tuple[float, int, Partition]] = []
        self._opens_at = -math.inf

    def open(self, now: float) -> bool:
        """Return whether the member may start any record now."""
        opens_at = self._gates.opens_at(now)
        self._opens_at = opens_at if opens_at > now else -math.inf
        return opens_at <= now

    def judge(self, task: Task, now: float) -> Verdict:
        """Decide about a task without keeping it. The member is open."""
        at = self._gates.ready_at(task, now)
        if at == IGNORE:
            return Verdict.IGNORE
        if at > now or self._gates.partition_opens_at(task, now) > now:
            return Verdict.WAIT
        return Verdict.START

    def admit(self, task: Task, now: float) -> Verdict:
        """Decide about a task; keep it when it has to wait. The member is open."""
        gates = self._gates
        at = gates.ready_at(task, now)
        if at == IGNORE:
            return Verdict.IGNORE
        if at > now:
            self._gated.push(at, task)
            return Verdict.WAIT
        at = gates.partition_opens_at(task, now)
        if at > now:
            partition = task.partition
            if not partition.throttled:
                heappush(self._throttled, (at, partition.epoch, partition))
            partition.throttled.append(task)
            return Verdict.WAIT
        gates.spend(task, now)
        return Verdict.START

    def spend(self, task: Task, now: float) -> None:
        """A task that `judge` let through starts."""
        self._gates.spend(task, now)

    def wake(self, now: float) -> list[Task]:
        """Return the tasks that may be tried again."""
        freed = self._gated.pop_due(now)
        while self._throttled and self._throttled[0][0] <= now:
            partition = heappop(self._throttled)[2]
            waiting = partition.throttled
            count, next_at = self._gates.partition_allowance(partition.key, now)
            freed.extend(waiting.popleft() for _ in range(min(count, len(waiting))))
            if waiting:
                heappush(self._throttled, (next_at, partition.epoch, partition))
        return freed

    def empty(self, partitions: Iterable[Partition]) -> list[Task]:
        """Return everything that waits; nothing waits here any more."""
        freed = self._gated.pop_all()
        self._throttled.clear()
        for partition in partitions:
            freed.extend(partition.throttled)
            partition.throttled.clear()
        return freed

    def remove_closed(self) -> list[Task]:
        """Take out and return what waits for a time and belongs to partitions that hand out nothing any more."""
        return self._gated.remove_closed()

    def waiting(self, partitions: Iterable[Partition]) -> int:
        """Return how many tasks wait here."""
        return len(self._gated) + sum(len(partition.throttled) for partition in partitions)

    def next_at(self, *, runnable: bool) -> float:
        """Return when `wake`, or the member's opening, frees something; infinity for never.

        Args:
            runnable: tasks wait for the member to open.
        """
        return min(
            math.inf if self._gated.next_due is None else self._gated.next_due,
            self._throttled[0][0] if self._throttled else math.inf,
            self._opens_at if runnable and self._opens_at > -math.inf else math.inf,
        )
