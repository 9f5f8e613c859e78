"""A live group moves from Confluent's Parallel Consumer to us and back: what was completed is not handled again.

The referee is the map's bytes as the broker holds them: which records may still be handled follows from them alone.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from parallel_consumer_runtime.offsets import OffsetMap, decode
from tests.support.history import End, read_history
from tests.support.java_consumer import JavaConsumer, java_decode
from tests.support.kafka import KafkaBroker
from tests.support.members import Members, spec_for
from tests.support.traffic import Traffic
from tests.support.waiting import wait_until

RECORDS = 10_000
KEYS = 500
HOT_EVERY = 10
"""One record in ten has the same key: the others overtake it, and the committed map has gaps."""
WORK_MS = 5
CONCURRENCY = 32
HALF_TIMEOUT_S = 60.0
REST_TIMEOUT_S = 90.0

Place = tuple[int, int]
"""Partition and offset."""


class Left(NamedTuple):
    """What the broker holds for the group when its first consumer is gone."""

    complete: set[Place]
    rest: set[Place]
    gaps: int
    """Complete records above an incomplete one: what only the map can tell."""


class Group:
    """One topic with every record produced, and the group that moves."""

    def __init__(self, kafka: KafkaBroker, topic: str, group: str) -> None:
        self.kafka, self.topic, self.group = kafka, topic, group
        Traffic(kafka.bootstrap, topic).send(
            ("hot" if number % HOT_EVERY == 0 else f"key-{number % KEYS}", b"x" * 100) for number in range(RECORDS)
        )
        self.ends = kafka.end_offsets(topic)
        self.all = {(partition, offset) for partition, end in self.ends.items() for offset in range(end)}
        assert len(self.all) == RECORDS

    def left(self) -> Left:
        """Read the group's maps; Java reads the same bytes as the same maps."""
        maps: dict[int, OffsetMap] = {}
        lines: list[tuple[int, str]] = []
        for partition, committed in sorted(self.kafka.committed(self.group, self.topic).items()):
            maps[partition] = decode(committed.metadata, committed.offset, log_end=self.ends[partition])
            lines.append((committed.offset, committed.metadata))
        assert java_decode(lines) == list(maps.values())
        complete = {place for place in self.all if place[0] in maps and _says_complete(maps[place[0]], place[1])}
        gaps = sum(offset > maps[partition].base for partition, offset in complete)
        return Left(complete, self.all - complete, gaps)

    def finished(self) -> bool:
        """Tell whether every record is committed as complete."""
        committed = self.kafka.committed(self.group, self.topic)
        return {partition: one.offset for partition, one in committed.items()} == self.ends


def _says_complete(known: OffsetMap, offset: int) -> bool:
    if offset > known.highest:
        return offset < known.base
    return not any(first <= offset <= last for first, last in known.incomplete)


def _ours(group: Group, folder: Path) -> Members:
    spec = spec_for(
        group.kafka.bootstrap,
        group.topic,
        group.group,
        "on_record",
        concurrency={"fixed": CONCURRENCY},
    )
    return Members("takeover", spec, folder, work_ms=WORK_MS)


def _handled(members: Members) -> Counter[Place]:
    """Return how often each record was handled by our member."""
    events = read_history(members.history_path)
    return Counter((event.at.partition, event.at.offset) for event in events if isinstance(event, End))


def _twice(handled: Mapping[Place, int]) -> list[Place]:
    return sorted(place for place, times in handled.items() if times > 1)


@pytest.mark.proves(7, 9)
@pytest.mark.timeout(240)
def test_ours_finishes_what_java_began(
    kafka: KafkaBroker, topic: str, group: str, tmp_path: Path, figure: Callable[[object], None]
) -> None:
    """Exactly the records that Java's maps leave incomplete are handled, each once."""
    moving = Group(kafka, topic, group)
    java = JavaConsumer(kafka.bootstrap, group, topic, tmp_path, concurrency=CONCURRENCY, work_max_ms=2 * WORK_MS)
    with java.process:
        wait_until(
            lambda: len(java.calls().done) >= RECORDS // 2,
            "Java is half way",
            HALF_TIMEOUT_S,
            every_s=0.1,
            state=java.process.tail,
        )
        java.stop(HALF_TIMEOUT_S)
    done = Counter(java.calls().done)
    left = moving.left()
    figure(f"Java did {len(done)}, its maps say {len(left.complete)} complete, {left.gaps} of them above a gap")
    assert left.gaps > 0
    assert left.rest
    with _ours(moving, tmp_path) as members:
        members.start(0)
        status = members.wait_status(0, lambda status: status.lag == 0, "has finished", REST_TIMEOUT_S)
        assert status.metadata_errors == 0
        assert members.terminate(0) == 0
    handled = _handled(members)
    again = sum((handled & done).values())
    figure(f"ours handled {len(handled)} and skipped {status.skipped}; {again} were done by Java after its last commit")
    assert _twice(handled) == []
    assert set(handled) == left.rest
    assert left.complete.isdisjoint(handled)
    assert status.skipped >= left.gaps
    assert moving.finished()


@pytest.mark.proves(7)
@pytest.mark.timeout(240)
def test_java_finishes_what_ours_began(
    kafka: KafkaBroker, topic: str, group: str, tmp_path: Path, figure: Callable[[object], None]
) -> None:
    """Our maps, written on SIGTERM, hold exactly what was handled; Java begins none of it again."""
    moving = Group(kafka, topic, group)
    with _ours(moving, tmp_path) as members:
        members.start(0)
        members.wait_status(0, lambda status: status.handled >= RECORDS // 2, "is half way", HALF_TIMEOUT_S)
        assert members.terminate(0) == 0
    handled = _handled(members)
    left = moving.left()
    figure(f"ours handled {len(handled)}, {left.gaps} of them above a gap")
    assert _twice(handled) == []
    assert set(handled) == left.complete
    assert left.gaps > 0
    assert left.rest
    java = JavaConsumer(kafka.bootstrap, group, topic, tmp_path, concurrency=CONCURRENCY, work_max_ms=2 * WORK_MS)
    with java.process:
        wait_until(moving.finished, "Java has committed the rest", REST_TIMEOUT_S, every_s=0.2, state=java.process.tail)
        java.stop(HALF_TIMEOUT_S)
    started = Counter(java.calls().started)
    figure(
        f"Java began {len(started)} of the {len(left.rest)} that were left, {len(left.complete & set(started))} others"
    )
    assert left.complete.isdisjoint(started)
    assert set(started) == left.rest
