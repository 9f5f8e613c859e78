"""Exactly once, as a reader of committed records sees it: each transaction is judged as it becomes visible, and all at the end."""

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from parallel_consumer_runtime.core import Partition
from tests.support.simulation.failure import Anomaly, Broken
from tests.support.simulation.log import Log

if TYPE_CHECKING:
    from tests.support.simulation.checking import Tenure
    from tests.support.simulation.group import Entry


class Produced(NamedTuple):
    """One result in the results' log."""

    tenure: "Tenure"
    offset: int
    """Of the record that it comes from."""
    shard: Hashable | None
    number: int
    """Which of the results of one call."""
    position: int = 0
    """In the results' log."""


class ResultsSeen:
    """What is visible, and what must be."""

    def __init__(self) -> None:
        self._visible: list[Produced] = []
        self._seen: dict[tuple[Log, int], int] = {}
        """How many results of a record are visible."""
        self._due: dict[tuple[Log, int], int] = {}
        """How many results of a record have to be visible: it is committed as done."""
        self._last: dict[tuple[Log, Hashable], Produced] = {}
        self._covered: dict[Partition, int] = {}
        """How much of what an assignment has done was committed."""
        self._returned: dict[tuple[Tenure, int], int] = {}

    def returned(self, tenure: "Tenure", offset: int, count: int) -> None:
        """A record is done, and came to so many results."""
        self._returned[tenure, offset] = count

    def committed(self, results: Sequence[Produced], entries: Sequence["Entry"]) -> None:
        """A transaction becomes visible."""
        due: dict[tuple[Log, int], int] = {}
        for entry in entries:
            source = entry.commit.source
            for tenure, offset in entry.tenure.done[self._covered.get(source, 0) : entry.done]:
                due[tenure.log, offset] = self._returned.get((tenure, offset), 0)
                tenure.log.done.add(offset)
            self._covered[source] = max(entry.done, self._covered.get(source, 0))
        found: dict[tuple[Log, int], set[int]] = {}
        for one in results:
            place = (one.tenure.log, one.offset)
            numbers = found.setdefault(place, set())
            if one.number in numbers or place in self._seen:
                raise Broken(Anomaly.DUPLICATE, f"{_name(place)}: a result of it is visible twice")
            numbers.add(one.number)
            if place not in due:
                raise Broken(
                    Anomaly.TORN, f"{_name(place)}: a result of it is visible, and its offset was not committed"
                )
            self._in_order(one)
        for place, count in due.items():
            if len(found.get(place, ())) != count:
                raise Broken(
                    Anomaly.TORN,
                    f"{_name(place)}: committed, and of its {count} results {len(found.get(place, ()))} are visible",
                )
            if place in self._due:
                raise Broken(Anomaly.DUPLICATE, f"{_name(place)}: committed as done twice")
        self._due |= due
        self._seen |= {place: len(numbers) for place, numbers in found.items()}
        self._visible += results

    def _in_order(self, one: Produced) -> None:
        if one.shard is None:
            return
        last = self._last.get((one.tenure.log, one.shard), one)
        if last.offset > one.offset or (last.position > one.position and last.offset != one.offset):
            raise Broken(
                Anomaly.NONMONOTONIC, f"a result of {one.offset} is behind one of {last.offset} of the same key"
            )
        self._last[one.tenure.log, one.shard] = one

    def judge(self) -> None:
        """At the end: read everything that is committed, from the beginning."""
        seen: dict[tuple[Log, int], list[int]] = {}
        for one in self._visible:
            seen.setdefault((one.tenure.log, one.offset), []).append(one.number)
        for place, numbers in seen.items():
            if sorted(numbers) != list(range(self._due[place])):
                raise Broken(
                    Anomaly.DUPLICATE, f"{_name(place)}: of its {self._due[place]} results {numbers} are visible"
                )
        for place, count in self._due.items():
            if count and place not in seen:
                raise Broken(Anomaly.LOST, f"{_name(place)}: none of its results is visible")


def _name(place: tuple[Log, int]) -> str:
    log, offset = place
    return f"{log.key.topic}[{log.key.partition}]@{offset}"
