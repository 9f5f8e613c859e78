"""What a run can have wrong, in the words of the history's checkers, and a few more."""

from enum import StrEnum


class Anomaly(StrEnum):
    """The first twelve letters of a failure's line."""

    LOST = "lost"
    UNSEEN = "unseen"
    PHANTOM = "phantom"
    DUPLICATE = "duplicate"
    NONMONOTONIC = "nonmonotonic"
    OVERLAP = "overlap"
    ZOMBIE = "zombie"
    COMMIT_BACK = "commit-back"
    TORN = "torn"
    """Of results and offset of one record only a part became visible."""
    BOUNDS = "bounds"
    """More waits or runs than was allowed."""
    LEAK = "leak"
    """Something is left when nothing is left to do."""
    STUCK = "stuck"
    """Without faults, and yet no progress."""
    CRASH = "crash"
    """The code under test raised."""


class Broken(AssertionError):  # noqa: N818 - what it says of a guarantee
    """A run broke a guarantee; it ends there."""

    def __init__(self, anomaly: Anomaly, what: str) -> None:
        super().__init__(f"{anomaly}: {what}")
        self.anomaly = anomaly
