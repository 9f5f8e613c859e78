"""What records become, on its way out: what waits, what is with the client, and what of it the open transaction holds.

Keeps: records that were produced together are in one transaction or in none, and so is a record's next result.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from parallel_consumer_runtime.core.partition import Partition
from parallel_consumer_runtime.handlers import Result


class Undelivered(NamedTuple):
    """Why something that was produced is not in its topic."""

    words: str
    permanent: bool
    """The broker does not take it as it is: another try would end the same."""


ABORTED = Undelivered("the transaction was aborted", permanent=False)
GIVEN_UP = Undelivered("its partition was given up", permanent=False)


class Delivery(Protocol):
    """What becomes of one group of produced records; called once."""

    def __call__(self, error: Undelivered | None) -> None:
        """All were acknowledged, or the first error."""
        ...


class Group:
    """Records that are produced together and reported together."""

    __slots__ = ("begun", "delivery", "error", "remaining", "several", "source")

    def __init__(self, count: int, delivery: Delivery, source: Partition | None) -> None:
        self.begun = False
        """The first of them is with the client."""
        self.delivery = delivery
        self.error: Undelivered | None = None
        self.remaining = count
        self.several = count > 1
        self.source = source
        """The assignment that they come from."""


Produce = Callable[[str, Result, Group], bool]
"""Gives one record to the client; False when the client has no room now."""


class Outbox:
    """First in, first out. Bounded by the engine: each record belongs to one that it buffers.

    Args:
        atomic: what is sent is part of transactions.
    """

    def __init__(self, *, atomic: bool = False) -> None:
        self._atomic = atomic
        self._waiting: deque[tuple[str, Result, Group]] = deque()
        self.holding = False
        """A transaction is being ended: what has not begun waits for the next."""
        self.outstanding = 0
        """Records that are with the client."""
        self.acknowledged = 0
        """Records that the broker acknowledged."""
        self.sources: set[Partition] = set()
        """Assignments that the open transaction holds something of."""
        self.failure: Undelivered | None = None
        """Something of the open transaction was not delivered."""

    @property
    def idle(self) -> bool:
        """Whether nothing is on its way, and of no group only a part was."""
        return not self.outstanding and not (self._waiting and self._waiting[0][2].begun)

    @property
    def spoiled(self) -> bool:
        """Whether the open transaction holds what others will do again: its partition is not ours any more."""
        return not all(source.live for source in self.sources)

    def add(self, topic: str, results: Sequence[Result], delivery: Delivery, source: Partition | None) -> None:
        """Take records that belong together; `pump` sends them."""
        group = Group(len(results), delivery, source)
        self._waiting.extend((topic, result, group) for result in results)

    def pump(self, produce: Produce) -> None:
        """Give the client what it takes, as far as it may go now."""
        waiting = self._waiting
        while waiting:
            topic, result, group = waiting[0]
            if not group.begun:
                if self.holding:
                    return
                if self._atomic and group.source is not None:
                    if not group.source.live:
                        waiting.popleft()
                        self._left_out(group, GIVEN_UP)
                        continue
                    self.sources.add(group.source)
            if not produce(topic, result, group):
                return
            waiting.popleft()
            group.begun = True
            self.outstanding += 1

    def report(self, group: Group, error: Undelivered | None, *, refused: bool = False) -> None:
        """One record that was with the client was acknowledged, or not.

        Args:
            group: whose.
            error: why not.
            refused: the client itself did not take it: alone, it is in no transaction.
        """
        self.outstanding -= 1
        group.remaining -= 1
        if error is None:
            self.acknowledged += 1
        else:
            group.error = group.error or error
            if group.several or not refused:
                self.failure = self.failure or error
        if group.remaining == 0:
            group.delivery(group.error)

    def forget(self) -> None:
        """The transaction was aborted: what waits was made by tasks of before, and goes nowhere."""
        waiting, self._waiting = self._waiting, deque()
        for _, _, group in waiting:
            self._left_out(group, ABORTED)
        self.renew()

    def renew(self) -> None:
        """Another transaction is open, and it holds nothing."""
        self.sources.clear()
        self.failure = None

    @staticmethod
    def _left_out(group: Group, error: Undelivered) -> None:
        group.remaining -= 1
        if group.remaining == 0:
            group.delivery(group.error or error)
