"""The only source of chance in a run: whole numbers and choices from one seed, cheaper than random.Random's own."""

from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


class Dice:
    """Draws; the same seed draws the same, in every process."""

    __slots__ = ("random", "source")

    def __init__(self, seed: int) -> None:
        self.source = Random(seed)
        self.random = self.source.random

    def below(self, count: int) -> int:
        """Return a whole number from 0 to count - 1."""
        return int(self.random() * count)

    def chance(self, share: float) -> bool:
        """Return True so often."""
        return self.random() < share

    def pick(self, of: Sequence[T]) -> T:
        """Return one of them."""
        return of[int(self.random() * len(of))]
