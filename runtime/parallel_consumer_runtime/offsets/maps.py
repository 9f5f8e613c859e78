"""The value that metadata stands for: which offsets of a closed range are incomplete."""

from bisect import bisect_right
from dataclasses import dataclass
from operator import itemgetter

OffsetRange = tuple[int, int]
"""First and last offset, inclusive."""

RANGES_MAX = 1 << 15
"""Incomplete ranges in metadata. 4,096 characters hold 12,288 without compression; a reader refuses more than this, since
84 characters of a repeating pattern could otherwise stand for millions and stop the thread for seconds."""


@dataclass(frozen=True, slots=True)
class OffsetMap:
    """Everything in base..highest is complete but the incomplete ranges; nothing is said of what lies above.

    A map of nothing has `highest == base - 1`.
    """

    base: int
    """The committed offset."""
    highest: int
    """The highest completed offset."""
    incomplete: tuple[OffsetRange, ...] = ()
    """Inclusive ranges, ascending, apart from each other by at least one complete offset."""

    def __post_init__(self) -> None:
        """Refuse ranges that are not as documented.

        Raises:
            ValueError: naming the first range that is out of place.
        """
        if self.base < 0 or self.highest < self.base - 1:
            msg = f"a map from {self.base} to {self.highest} is no range of offsets"
            raise ValueError(msg)
        end = self.base - 2
        for first, last in self.incomplete:
            if not end + 1 < first <= last <= self.highest:
                msg = f"the incomplete range {first}..{last} overlaps, touches or leaves {self.base}..{self.highest}"
                raise ValueError(msg)
            end = last

    @property
    def span(self) -> int:
        """Offsets that the map speaks of."""
        return self.highest - self.base + 1

    def runs(self) -> list[int]:
        """Return alternating counts of offsets, the first counting incomplete ones (perhaps none); they sum to `span`."""
        runs: list[int] = []
        position = self.base
        for first, last in self.incomplete:
            if runs or first > position:
                runs += [first - position] if runs else [0, first - position]
            runs.append(last - first + 1)
            position = last + 1
        if not runs:
            runs.append(0)
        if position <= self.highest:
            runs.append(self.highest - position + 1)
        return runs

    def cut(self, highest: int) -> "OffsetMap":
        """Return what the map says of base..highest."""
        kept = self.incomplete[: bisect_right(self.incomplete, highest, key=itemgetter(0))]
        if kept and kept[-1][1] > highest:
            kept = (*kept[:-1], (kept[-1][0], highest))
        return OffsetMap(self.base, highest, kept)


def from_runs(base: int, runs: list[int]) -> OffsetMap:
    """Return the map of alternating counts, the first counting incomplete offsets. Counts of 0 join their neighbours."""
    incomplete: list[OffsetRange] = []
    position = base
    for index, count in enumerate(runs):
        if count and index % 2 == 0:
            if incomplete and incomplete[-1][1] == position - 1:
                incomplete[-1] = (incomplete[-1][0], position + count - 1)
            else:
                incomplete.append((position, position + count - 1))
        position += count
    return OffsetMap(base, position - 1, tuple(incomplete))
