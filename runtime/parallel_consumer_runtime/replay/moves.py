"""Pure: what a reset would do to each partition, and what that means for records that are complete or are not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from parallel_consumer_runtime.core import PartitionKey
from parallel_consumer_runtime.kafka.librdkafka import Position
from parallel_consumer_runtime.replay.places import Place, resolve
from parallel_consumer_runtime.replay.standing import Standing


@dataclass(frozen=True, slots=True)
class Move:
    """One partition's way from where the group is to where it is to be."""

    key: PartitionKey
    before: int | None
    """The committed offset; None when nothing is committed."""
    after: int | None
    """None when this partition stays as it is."""
    handled_again: int
    """Offsets in the log that are complete and lie at or above `after`: the map that says so is dropped."""
    never_handled: int
    """Offsets in the log that are not complete and lie below `after`."""
    note: str

    @property
    def position(self) -> Position | None:
        """What is to be committed, without a map; None when this partition stays as it is."""
        return None if self.after is None else Position(self.key.topic, self.key.partition, self.after, "")


def plan_moves(standings: Sequence[Standing], place: Place, times: Mapping[PartitionKey, int | None]) -> list[Move]:
    """Return one move per partition, in the same order.

    Args:
        standings: how the group stands.
        place: where it is to be.
        times: for a time, each partition's first offset that is not older.
    """
    return [_move(one, place, times.get(one.key)) for one in standings]


def _move(standing: Standing, place: Place, at_time: int | None) -> Move:
    key, log, committed = standing.key, standing.log, standing.committed
    found = resolve(place, log, at_time, committed)
    if found is None:
        return Move(key, committed, None, 0, 0, "nothing is committed: there is nothing to shift from")
    after = found.offset
    # Where nothing is committed nobody knows what was handled: what a member would begin with counts as open.
    begins = standing.begins if standing.begins is not None else log.start
    again = standing.complete_within(after, log.end)
    skipped = 0
    if committed is not None:
        again += max(0, min(committed, log.end) - after)
    if after > begins:
        skipped = after - begins - standing.complete_within(begins, after)
    return Move(key, committed, after, again, skipped, found.note)
