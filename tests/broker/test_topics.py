"""Several topics, topics that appear later, and topics that grow, while their records are consumed."""

import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from parallel_consumer_runtime.settings import ParallelConsumerSpec
from tests.support.checkers import OneAtATime, every_checker, judge, report
from tests.support.commit_watch import CommitWatch
from tests.support.filling import add_partitions, replace_topic
from tests.support.history import End, Start, read_history, read_so_far
from tests.support.kafka import KafkaBroker
from tests.support.members import Members, spec_for
from tests.support.traffic import Feeder, Traffic
from tests.support.waiting import wait_until

KEYS = 200
REFRESH_S = 2.0
NOTICE_S = REFRESH_S + 6.0
"""A refresh, a rebalance and a fetch."""


def _spec(kafka: KafkaBroker, topic: str, group: str, **fields: Any) -> ParallelConsumerSpec:
    """Return a spec with other fields in `spec.kafka`; None takes one away."""
    spec = spec_for(kafka.bootstrap, topic, group, "on_record", concurrency={"fixed": 50})
    settings = {**spec.kafka.model_dump(mode="json", by_alias=True, exclude_unset=True), "metadataRefresh": "2s"}
    settings = {name: value for name, value in {**settings, **fields}.items() if value is not None}
    return spec.model_copy(update={"kafka": type(spec.kafka).model_validate(settings)})


def _records() -> Iterator[tuple[str, bytes]]:
    return ((f"key-{n % KEYS}", b"x") for n in itertools.count())


def _some_records(count: int) -> Iterator[tuple[str, bytes]]:
    return itertools.islice(_records(), count)


def _done(members: Members, topic: str) -> int:
    """Return how many records of a topic were handled."""
    return sum(type(e) is End and e.at.topic == topic for e in read_so_far(members.history_path))


def _judge(members: Members) -> None:
    """Check every guarantee; that of one record of a key at a time for each partition by itself."""
    events = read_history(members.history_path)
    violations = judge(events, [checker for checker in every_checker() if not isinstance(checker, OneAtATime)])
    for place in {event.at[:2] for event in events if type(event) is Start}:
        here = [event for event in events if not isinstance(event, Start | End) or event.at[:2] == place]
        violations += judge(here, [OneAtATime()])
    assert not violations, report(violations)


@pytest.mark.proves(30)
def test_two_topics_are_consumed_by_one_group(kafka: KafkaBroker, topic: str, group: str, tmp_path: Path) -> None:
    """Everything of both, nothing twice, keys in order; the same key of two topics is two keys."""
    other = f"{topic}-other"
    kafka.create_topic(other, 2)
    spec = _spec(kafka, topic, group, topics=[topic, other])
    with Members("two", spec, tmp_path, work_ms=1) as members:
        for name in (topic, other):
            Traffic(kafka.bootstrap, name, members.history).send(_some_records(2000))
        members.start(0)
        members.wait_status(0, lambda status: status.handled == 4000 and status.lag == 0, "handled both")

        def committed() -> list[int]:
            return [kafka.committed_total(group, name) for name in (topic, other)]

        wait_until(lambda: committed() == [2000, 2000], "everything is committed", 30)
        assert members.terminate(0) == 0
    _judge(members)


@pytest.mark.proves(30)
def test_a_topic_that_appears_later_is_consumed_within_a_metadata_refresh(
    kafka: KafkaBroker, unique: str, group: str, tmp_path: Path, figure: Callable[[object], None]
) -> None:
    """The pattern takes what matches, now and later, and nothing else."""
    first, later, stranger = f"{unique}-in-a", f"{unique}-in-b", f"{unique}-out"
    for name in (first, stranger):
        kafka.create_topic(name, 2)
    spec = _spec(kafka, first, group, topics=None, topicPattern=f"^{unique}-in-.*")
    with Members("pattern", spec, tmp_path, work_ms=1) as members:
        Traffic(kafka.bootstrap, stranger).send(_some_records(10))
        Traffic(kafka.bootstrap, first, members.history).send(_some_records(500))
        members.start(0)
        members.wait_status(0, lambda status: status.handled == 500, "handled the first topic")
        kafka.create_topic(later, 3)
        created_at = time.monotonic()
        Traffic(kafka.bootstrap, later, members.history).send(_some_records(500))
        wait_until(lambda: _done(members, later) == 500, "the later topic is consumed", NOTICE_S)
        figure(f"consumed {time.monotonic() - created_at:.1f} s after it was created, refresh {REFRESH_S:g} s")
        Traffic(kafka.bootstrap, first, members.history).send(_some_records(500))
        status = members.wait_status(0, lambda status: status.handled == 1500, "goes on with the first topic")
        assert {partition.topic for partition in status.partitions} == {first, later}
        assert members.terminate(0) == 0
    _judge(members)


@pytest.mark.proves(34)
@pytest.mark.parametrize("count", [1, 2], ids=["one member", "two members"])
def test_partitions_are_added_while_records_are_consumed(  # noqa: PLR0917 - pytest passes by name
    kafka: KafkaBroker,
    unique: str,
    group: str,
    tmp_path: Path,
    figure: Callable[[object], None],
    count: int,
) -> None:
    """Keys move: nothing is lost or repeated, and each partition keeps its keys in order, one record at a time."""
    kafka.create_topic(unique, 2)
    spec = _spec(kafka, unique, group)
    with Members("grow", spec, tmp_path, work_ms=20) as members:
        with CommitWatch(kafka.bootstrap, group, unique, members.history) as watch:
            for ordinal in range(count):
                members.start(ordinal)
            for ordinal in range(count):
                members.wait_status(ordinal, lambda status: len(status.partitions) == 2 // count, "owns its share")
            # One producer learnt of the topic before it grew, and goes on with two partitions; another one uses all six.
            early = Traffic(kafka.bootstrap, unique, members.history)
            with Feeder(early, _records(), 4000, lambda: watch.total):
                for ordinal in range(count):
                    members.wait_status(ordinal, lambda status: status.handled > 500, "runs")
                add_partitions(kafka.bootstrap, unique, 6)
                grown_at = time.monotonic()
                late = Traffic(kafka.bootstrap, unique, members.history)
                late.send(_some_records(3000))

                def owned() -> int:
                    statuses = [members.status(ordinal) for ordinal in range(count)]
                    return sum(len(status.partitions) for status in statuses if status is not None)

                wait_until(lambda: owned() == 6, "the new partitions are owned", NOTICE_S)
                figure(f"owned {time.monotonic() - grown_at:.1f} s after they were added, refresh {REFRESH_S:g} s")
                late.send(_some_records(3000))
            wait_until(lambda: watch.total == early.produced + late.produced, "everything is committed", 60)
            figure(f"{watch.total} records")
        assert len(kafka.committed(group, unique)) == 6
        for ordinal in range(count):
            assert members.terminate(ordinal) == 0
    _judge(members)


@pytest.mark.parametrize("count", [300, 3000], ids=["shorter", "longer"])
def test_a_topic_that_is_made_again_at_once_is_handled_from_its_start(  # noqa: PLR0917 - pytest passes by name
    kafka: KafkaBroker,
    topic: str,
    group: str,
    tmp_path: Path,
    figure: Callable[[object], None],
    count: int,
) -> None:
    """Its partitions stay assigned: what was handled of the old topic says nothing of the new one's records."""
    spec = _spec(kafka, topic, group)
    with Members("again", spec, tmp_path, work_ms=1) as members:
        Traffic(kafka.bootstrap, topic).send(_some_records(1000))
        members.start(0)
        members.wait_status(0, lambda status: status.handled == 1000 and status.lag == 0, "handled the old topic")
        wait_until(lambda: kafka.committed_total(group, topic) == 1000, "the old topic is committed", 30)
        replace_topic(kafka.bootstrap, topic, 4)
        Traffic(kafka.bootstrap, topic).send(_some_records(count))
        status = members.wait_status(0, lambda status: status.handled == 1000 + count, "handles the new topic")
        figure(f"{status.handled - 1000} of {count} handled, {status.rebalances} rebalances")
        wait_until(lambda: kafka.committed_total(group, topic) == count, "the new topic is committed", 30)
        assert members.terminate(0) == 0
        members.start(0)
        status = members.wait_status(0, lambda status: len(status.partitions) == 4 and status.lag == 0, "came back")
        assert status.handled == 0
        assert members.terminate(0) == 0
