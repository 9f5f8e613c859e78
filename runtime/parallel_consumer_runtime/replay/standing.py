"""Pure: how a group stands in one partition, from its commit, the commit's map and the log's bounds."""

from collections.abc import Sequence
from dataclasses import dataclass

from parallel_consumer_runtime.core import PartitionKey
from parallel_consumer_runtime.kafka.librdkafka import Position
from parallel_consumer_runtime.kafka.logs import LogBounds
from parallel_consumer_runtime.offsets import OffsetMap, OffsetMetadataError, decode
from parallel_consumer_runtime.settings import AutoOffsetReset


@dataclass(frozen=True, slots=True)
class Standing:
    """One partition as the group left it."""

    key: PartitionKey
    log: LogBounds
    committed: int | None
    """The lowest offset that is not complete; None when nothing is committed."""
    known: OffsetMap | None
    """What the commit's map says; None when nothing is committed or the map cannot be read."""
    begins: int | None
    """Where a member would begin now; None when it would refuse to (spec.kafka.autoOffsetReset is Error)."""
    note: str
    """What a person should know; mostly empty."""

    @property
    def lag(self) -> int | None:
        """Offsets in the log that are not complete; None when nobody can tell where the group would begin."""
        return (
            None
            if self.begins is None
            else self.log.end - self.begins - self.complete_within(self.begins, self.log.end)
        )

    @property
    def complete_above(self) -> int:
        """Completed offsets above the committed one."""
        return 0 if self.known is None else self.complete_within(self.known.base, self.known.highest + 1)

    @property
    def incomplete(self) -> int:
        """Offsets that the map calls incomplete: the gaps below its highest completed one."""
        return 0 if self.known is None else sum(last - first + 1 for first, last in self.known.incomplete)

    @property
    def head_of_line(self) -> int | None:
        """The offset that everything else waits for to be committed; None when nothing is left to handle."""
        return self.begins if self.lag else None

    def complete_within(self, start: int, end: int) -> int:
        """Return how many offsets of `start` up to, and without, `end` lie above the commit and are complete."""
        if self.known is None:
            return 0
        start, end = max(start, self.known.base), min(end, self.known.highest + 1)
        gaps = sum(max(0, min(last + 1, end) - max(first, start)) for first, last in self.known.incomplete)
        return max(0, end - start - gaps)


def standing(key: PartitionKey, position: Position, log: LogBounds, reset: AutoOffsetReset) -> Standing:
    """Return how a group stands in one partition.

    Args:
        key: the partition.
        position: the group's commit, negative when there is none.
        log: what the partition holds.
        reset: where a group without a usable commit begins.
    """
    fallback = {AutoOffsetReset.EARLIEST: log.start, AutoOffsetReset.LATEST: log.end, AutoOffsetReset.ERROR: None}[
        reset
    ]
    if position.offset < 0:
        return Standing(key, log, None, None, fallback, "")
    notes: list[str] = []
    begins: int | None = position.offset
    if not log.start <= position.offset <= log.end:
        gone = "is gone from the log" if position.offset < log.start else "is beyond the log's end"
        notes.append(f"the committed offset {gone}: autoOffsetReset {reset.value} applies")
        begins = fallback
    known: OffsetMap | None = None
    try:
        known = decode(position.metadata, position.offset, log_end=log.end)
    except OffsetMetadataError as error:
        notes.append(f"the map cannot be read ({error}): what it calls complete is handled again")
    return Standing(key, log, position.offset, known, begins, "; ".join(notes))


def total_lag(standings: Sequence[Standing]) -> int | None:
    """Return the lag of all partitions; None when that of any is unknown."""
    lags = [one.lag for one in standings]
    known = [lag for lag in lags if lag is not None]
    return sum(known) if len(known) == len(lags) else None
