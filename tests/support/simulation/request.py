"""An asynchronous commit on its way to the broker, or its answer on the way back."""

from typing import NamedTuple

from parallel_consumer_runtime.core import PartitionCommit
from tests.support.simulation.checking import Tenure
from tests.support.simulation.group import Entry

Planned = list[tuple[PartitionCommit, Tenure, int]]
"""Commits, whose they are, and how many records these had done when they were planned."""


class Request(NamedTuple):
    """One commit."""

    planned: Planned
    entries: list[Entry]
    generation: int
    number: int
    """Of all commits that the process sent."""
    error: str | None
    applied: bool
    """Or refused: the broker has decided."""
