"""Which offsets of one partition are complete, and so what may be committed.

Keeps: the committable offset never goes back, and an offset that was delivered and not completed is never reported
as complete. Memory is O(incomplete offsets): everything up to the highest completed offset that is not incomplete is
complete, which also covers offsets that were never delivered (compaction, transaction markers).
"""

from collections import OrderedDict
from collections.abc import Iterable, Sequence

OffsetRange = tuple[int, int]
"""First and last offset, inclusive."""


class Ledger:
    """The offsets of one partition, for one assignment.

    Args:
        base: the committed offset, None when the group has none.
        highest: the highest offset that the commit's map speaks of, None without a map.
        incomplete: the map's incomplete ranges.
    """

    __slots__ = ("_base", "_expected", "_gaps", "_incomplete", "_mapped_to", "delivered", "dirty", "highest")

    def __init__(
        self, base: int | None = None, highest: int | None = None, incomplete: Sequence[OffsetRange] = ()
    ) -> None:
        # Offsets are delivered in order, so insertion order is offset order and the first key is the lowest. An
        # OrderedDict, because finding a plain dict's first key is linear in the keys deleted before it.
        self._incomplete: OrderedDict[int, None] = OrderedDict()
        self._base = base
        self.delivered = -1
        """The highest offset that was polled; -1 before the first."""
        self._gaps = 0
        self.highest = -1 if highest is None else highest
        self._mapped_to = self.highest
        self.dirty = False
        """Something changed since the last `plan`."""
        for first, last in incomplete:
            self._gaps += 1
            self._incomplete.update(dict.fromkeys(range(first, last + 1)))
        # Incomplete offsets of the map that were not delivered again yet: they may turn out to be gone from the log.
        self._expected: list[int] = list(self._incomplete)[::-1]
        # A map without a gap means a higher offset than the one that it was committed at.
        self.dirty = base is not None and self.committable != base

    @property
    def gaps(self) -> int:
        """Runs of incomplete offsets: what a run-length map needs room for."""
        return self._gaps

    @property
    def incomplete(self) -> int:
        """Offsets that are known and not complete."""
        return len(self._incomplete)

    @property
    def lowest(self) -> int:
        """The lowest incomplete offset; asked while there is one."""
        return next(iter(self._incomplete))

    @property
    def committable(self) -> int | None:
        """The lowest incomplete offset, else one past the highest completed; None while nothing is known."""
        if self._incomplete:
            return self.lowest
        if self.highest >= 0 and (self._base is None or self.highest >= self._base):
            return self.highest + 1
        return self._base

    @property
    def span(self) -> int:
        """Offsets from the lowest incomplete to the highest completed: the length of a map."""
        if not self._incomplete:
            return 0
        return max(0, self.highest - self.lowest + 1)

    def deliver(self, offset: int) -> bool:
        """Note a record that was polled. Return False when it is complete already, or not above `delivered`."""
        if offset <= self.delivered:
            return False
        if self.delivered < 0 and self._base is not None and offset < self._base:
            self._forget_map()
        self.delivered = offset
        if offset <= self._mapped_to:
            return self._deliver_mapped(offset)
        if self._expected:
            self._forget_expected(offset)
        incomplete = self._incomplete
        if offset - 1 not in incomplete:
            self._gaps += 1
        incomplete[offset] = None
        return True

    def complete(self, offset: int) -> None:
        """Note that a delivered record is done. Unknown offsets are ignored: their completion came twice."""
        incomplete = self._incomplete
        if offset not in incomplete:
            return
        del incomplete[offset]
        self._gaps += (offset - 1 in incomplete) + (offset + 1 in incomplete) - 1
        self.highest = max(self.highest, offset)
        self.dirty = True

    def plan(self) -> tuple[int, int, tuple[OffsetRange, ...]] | None:
        """Return (offset to commit, highest completed, incomplete ranges between them) and clear `dirty`.

        The ranges are empty when nothing is incomplete below the highest completed offset. None when nothing can be
        committed yet.
        """
        self.dirty = False
        offset = self.committable
        if offset is None:
            return None
        return offset, max(self.highest, offset - 1), tuple(_ranges(self._incomplete, self.highest))

    def _deliver_mapped(self, offset: int) -> bool:
        self._forget_expected(offset)
        if offset not in self._incomplete:
            return False
        self._expected.pop()
        return True

    def _forget_map(self) -> None:
        """The log begins anew below the committed offset: the map speaks of records that are gone."""
        self._incomplete.clear()
        self._expected.clear()
        self._gaps = 0
        self._base = None
        self._mapped_to = self.highest = -1

    def _forget_expected(self, offset: int) -> None:
        """Incomplete offsets of the map below a delivered one are gone from the log: nobody can complete them."""
        while self._expected and self._expected[-1] < offset:
            gone = self._expected.pop()
            del self._incomplete[gone]
            self._gaps += (gone - 1 in self._incomplete) + (gone + 1 in self._incomplete) - 1
            self.dirty = True


def _ranges(offsets: Iterable[int], highest: int) -> Iterable[OffsetRange]:
    first = last = -2
    for offset in offsets:
        if offset > highest:
            break
        if offset == last + 1:
            last = offset
            continue
        if last >= 0:
            yield first, last
        first = last = offset
    if last >= 0:
        yield first, last
