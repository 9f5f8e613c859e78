"""Rate limits: how soon the next record may start, for the member, for each partition, for each key. Pure.

The generic cell rate algorithm (ITU-T I.371, annex A): one number per limit, the time at which the next cell would be due if
all came evenly; a cell that comes earlier than that by more than the tolerance waits.
"""

import math
from collections import OrderedDict
from collections.abc import Hashable
from typing import NamedTuple

BURST_S = 0.1
"""How much of a rate may come at once, in seconds of that rate: small against what a user measures a rate over."""
KEYS_MAX = 100_000
"""Keys whose rates are remembered; beyond it the key that was longest without a record is forgotten."""


class Rates(NamedTuple):
    """Records per second that may start; below 0 is no limit, 0 is none at all."""

    member: float = -1.0
    per_partition: float = -1.0
    per_key: float = -1.0

    @property
    def unlimited(self) -> bool:
        """Whether nothing is limited."""
        return self.member < 0 and self.per_partition < 0 and self.per_key < 0


class RateLimit:
    """One limit over any number of names; a name that had its fill for long is forgotten.

    Args:
        rate: records per second, below 0 for no limit, 0 for none.
        names_max: how many names are remembered.
    """

    __slots__ = ("_burst_s", "_due", "_interval_s", "_names_max", "forgotten")

    def __init__(self, rate: float, names_max: int = KEYS_MAX) -> None:
        self._interval_s = math.inf if rate == 0 else max(0.0, 1.0 / rate)
        self._burst_s = max(0.0, BURST_S - self._interval_s)
        self._names_max = names_max
        self._due: OrderedDict[Hashable, float] = OrderedDict()
        self.forgotten = 0
        """Names that were dropped before their time, because there were too many."""

    @property
    def remembered(self) -> int:
        """How many names are remembered."""
        return len(self._due)

    def ready_at(self, name: Hashable, now: float) -> float:
        """Return when the name's next record may start; not later than `now` when it may start now."""
        if self._interval_s == math.inf:
            return math.inf
        return self._due.get(name, now) - self._burst_s

    def allowance(self, name: Hashable, now: float) -> tuple[int, float]:
        """Return how many of the name's records may start now, and when the one after them may."""
        if self._interval_s == math.inf:
            return 0, math.inf
        # Time that passed without a record is worth a burst and no more.
        ready_at = max(self.ready_at(name, now), now - self._burst_s)
        count = max(0, math.floor((now - ready_at) / self._interval_s) + 1)
        return count, ready_at + count * self._interval_s

    def spend(self, name: Hashable, now: float) -> None:
        """A record of the name starts now."""
        if not self._interval_s:
            return
        due = self._due
        due[name] = max(now, due.get(name, now)) + self._interval_s
        due.move_to_end(name)
        # The first is the longest unused: two are looked at for each one added, so that the dictionary shrinks again.
        for _ in range(2):
            first = next(iter(due))
            if due[first] > now and len(due) <= self._names_max:
                return
            self.forgotten += due.pop(first) > now
            if not due:
                return
