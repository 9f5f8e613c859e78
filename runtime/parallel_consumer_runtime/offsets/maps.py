"""The value that metadata stands for: which offsets of a closed range are incomplete."""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from operator import itemgetter

OffsetRange = tuple[int, int]
"""First and last offset, inclusive."""

RANGES_MAX = 6144
"""Incomplete ranges in metadata that a reader believes, and a writer keeps: as many as 4,096 characters of random bits hold.
84 characters of a repeating pattern could stand for millions; these are read in half of the 5 ms that any metadata may take."""
INCOMPLETE_MAX = 1 << 17
"""Incomplete offsets in metadata that a reader believes, and a writer keeps. Each is a record that was buffered when the
map was written, and is kept in memory again: ten characters could otherwise claim two billion of them."""


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


def within_bounds(incomplete: Iterable[OffsetRange]) -> int:
    """Return how many of the ranges, from the first on, a reader would believe."""
    offsets = accumulate(last - first + 1 for first, last in incomplete)
    return sum(1 for number, total in enumerate(offsets, 1) if number <= RANGES_MAX and total <= INCOMPLETE_MAX)


def from_bounds(base: int, highest: int, firsts: Iterable[int], lasts: Iterable[int]) -> OffsetMap:
    """Return the map of ranges that are known to be as documented: to look at them again would take as long as reading them."""
    offsets = object.__new__(OffsetMap)
    object.__setattr__(offsets, "base", base)
    object.__setattr__(offsets, "highest", highest)
    object.__setattr__(offsets, "incomplete", tuple(zip(firsts, lasts, strict=True)))
    return offsets
