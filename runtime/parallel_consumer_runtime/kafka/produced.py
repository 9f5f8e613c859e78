"""How far the results and dead letters of this process reach: by partition, the last acknowledged offset plus one.

Keeps: what is told was acknowledged, and under exactly once committed; what an open or aborted transaction holds is not told.

Threads: offsets are written by whichever thread serves the producer, `commit` and `abort` are called while nothing is on its
way, `ends` by any.
"""

from collections.abc import Collection

from parallel_consumer_runtime.core import PartitionKey


class ProducedEnds:
    """Remembers one number for each partition of a few topics: bounded by their partitions.

    Args:
        topics: those that are told of.
        atomic: what is produced counts from the commit of its transaction on; `commit` and `abort` are for that alone.
    """

    def __init__(self, topics: Collection[str], *, atomic: bool = False) -> None:
        self._told: dict[str, dict[int, int]] = {topic: {} for topic in topics}
        # Outside of transactions both are the same: the record path writes where the snapshot reads.
        self._noted = {topic: dict[int, int]() for topic in topics} if atomic else self._told

    def of(self, topic: str) -> dict[int, int] | None:
        """Return where the offsets of a topic's acknowledged records go, by partition; None when nobody asks for them."""
        return self._noted.get(topic)

    def commit(self) -> None:
        """The transaction was committed."""
        for topic, noted in self._noted.items():
            # Put in place, not compared: in a topic that was made anew, offsets begin anew.
            self._told[topic].update(noted)
        self.abort()

    def abort(self) -> None:
        """The transaction was aborted, or another one begins: what it held so far counts nowhere."""
        for noted in self._noted.values():
            noted.clear()

    def ends(self) -> list[tuple[PartitionKey, int]]:
        """Return the ends, in order."""
        # A copy is made in one go, while the other thread writes.
        return [
            (PartitionKey(topic, partition), last + 1)
            for topic, lasts in sorted(self._told.items())
            for partition, last in sorted(lasts.copy().items())
        ]
