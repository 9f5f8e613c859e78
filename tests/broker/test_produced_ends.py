"""How far its results and dead letters reach, as each member tells at /status: never further than what readers will find there."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from parallel_consumer_runtime.settings import MemberStatus, ParallelConsumerSpec
from tests.support.kafka import KafkaBroker
from tests.support.members import Members, spec_for
from tests.support.traffic import Feeder, Traffic, read_committed
from tests.support.waiting import wait_until

RESULT_PARTITIONS = 3
Ends = dict[tuple[str, int], int]


@pytest.fixture
def results_topic(kafka: KafkaBroker, unique: str) -> str:
    """Return a new topic that refuses records of more than 100 kB."""
    name = f"{unique}-results"
    kafka.create_topic(name, RESULT_PARTITIONS, {"max.message.bytes": "100000"})
    return name


@pytest.fixture
def dead_topic(kafka: KafkaBroker, unique: str) -> str:
    """Return a new topic of one partition."""
    name = f"{unique}-dead"
    kafka.create_topic(name, 1)
    return name


def exactly_once(kafka: KafkaBroker, topic: str, group: str, results: str, **processing: Any) -> ParallelConsumerSpec:
    """Return a spec whose results and offsets are committed together."""
    wished: dict[str, Any] = {"concurrency": {"fixed": 50}, "commitMode": "Transactional", **processing}
    return spec_for(kafka.bootstrap, topic, group, "with_result", results=results, **wished)


def ends_of(status: MemberStatus) -> Ends:
    """Return what a member tells, by topic and partition."""
    return {(one.topic, one.partition): one.end for one in status.produced}


def high_watermarks(kafka: KafkaBroker, *topics: str) -> Ends:
    """Return the ends of the partitions that hold something."""
    return {
        (topic, partition): end for topic in topics for partition, end in kafka.end_offsets(topic).items() if end > 0
    }


def records(count: int) -> Iterator[tuple[str, bytes]]:
    """Yield so many small records of fifty keys."""
    return ((f"key-{n % 50}", b"%d" % n) for n in range(count))


def test_results_and_dead_letters_are_told_and_the_retry_topic_is_not(  # noqa: PLR0917 - fixtures, by name
    kafka: KafkaBroker, topic: str, results_topic: str, dead_topic: str, group: str, unique: str, tmp_path: Path
) -> None:
    """When all is done each end is its partition's high watermark; nobody else produced."""
    retry_topic = f"{unique}-retry"
    kafka.create_topic(retry_topic, 1)
    spec = spec_for(
        kafka.bootstrap,
        topic,
        group,
        "with_result",
        results=results_topic,
        retry={"maxAttempts": 2, "initialBackoff": "10ms", "maxBackoff": "20ms"},
        retryTopic={"topic": retry_topic, "afterAttempts": 1, "initialBackoff": "10ms", "maxBackoff": "20ms"},
        deadLetter={"topic": dead_topic},
    )
    traffic = Traffic(kafka.bootstrap, topic)
    traffic.send(records(600))
    traffic.send([("large", os.urandom(200_000))])  # its result is refused: it is tried again, and given up
    with Members("ends", spec, tmp_path, work_ms=1) as members:
        members.start(0)
        status = members.wait_status(
            0, lambda status: status.dead_lettered == 1 and status.lag == 0, "handled everything", timeout_s=60
        )
        assert high_watermarks(kafka, retry_topic), "nothing went through the retry topic"
        assert ends_of(status) == high_watermarks(kafka, results_topic, dead_topic)
        assert members.terminate(0) == 0


def test_an_open_transaction_is_not_told_and_a_committed_one_is(
    kafka: KafkaBroker, topic: str, results_topic: str, group: str, tmp_path: Path
) -> None:
    """All results are acknowledged and none is told, until the transaction is committed: then each, without the mark of its end."""
    spec = exactly_once(kafka, topic, group, results_topic, commitInterval="10s")
    traffic = Traffic(kafka.bootstrap, topic)
    with Members("open", spec, tmp_path, work_ms=1) as members:
        members.start(0)

        def told_when_all_is_produced() -> Ends:
            traffic.send(records(500))
            return ends_of(members.wait_status(0, lambda status: status.results == traffic.produced, "has produced"))

        # Time is not ours to stop: the transaction of a round may have been committed in the middle of it.
        told = told_when_all_is_produced()
        while (again := told_when_all_is_produced()) != told:
            told = again
        open_ends = high_watermarks(kafka, results_topic)
        assert sum(open_ends.values()) >= sum(told.values()) + 500
        processing = {**spec.processing.model_dump(mode="json", by_alias=True, exclude_unset=True), "commitRecords": 1}
        members.apply(spec.model_copy(update={"processing": type(spec.processing).model_validate(processing)}))
        members.wait_status(0, lambda status: ends_of(status) == open_ends, "tells what it committed")
        assert high_watermarks(kafka, results_topic) == {at: end + 1 for at, end in open_ends.items()}
        assert members.terminate(0) == 0


def test_what_is_told_is_there_for_readers_of_committed_records(  # noqa: PLR0917 - fixtures, by name
    kafka: KafkaBroker,
    topic: str,
    results_topic: str,
    dead_topic: str,
    group: str,
    tmp_path: Path,
    figure: Callable[[object], None],
) -> None:
    """Aborted transactions, a kill and two rebalances: the record before each end that was ever told is one that they see."""
    spec = exactly_once(
        kafka,
        topic,
        group,
        results_topic,
        retry={"maxAttempts": 2},
        deadLetter={"topic": dead_topic},
        commitInterval="200ms",
    ).model_copy(update={"replicas": 2})
    traffic = Traffic(kafka.bootstrap, topic)
    told: set[tuple[str, int, int]] = set()

    def progress() -> int:
        return kafka.committed_total(group, topic)

    def stream() -> Iterator[tuple[str, bytes]]:
        for number, record in enumerate(records(1_000_000)):
            yield record
            if number % 4_000 == 1_000:
                yield "large", os.urandom(200_000)  # whose result spoils its transaction

    with Members("told", spec, tmp_path, work_ms=2) as members:

        def reached(ordinal: int, handled: int) -> MemberStatus:
            def listens(status: MemberStatus) -> bool:
                told.update((one.topic, one.partition, one.end) for one in status.produced)
                return status.handled >= handled and bool(status.produced)

            return members.wait_status(ordinal, listens, f"handled {handled}", timeout_s=60)

        members.start(0)
        with Feeder(traffic, stream(), 10_000, progress):
            before = ends_of(reached(0, 3_000))
            members.start(1)
            members.wait_status(1, lambda status: bool(status.partitions), "took over a part")
            after = ends_of(reached(0, 4_000))
            assert all(after[at] >= end for at, end in before.items()), "a rebalance took back what was told"
            reached(1, 3_000)
            members.kill(1)
            members.start(1)
            reached(1, 2_000)
            reached(0, 6_000)

        def all_is_done() -> bool:
            for ordinal in members.ordinals():
                reached(ordinal, 1)
            return progress() >= traffic.produced

        wait_until(all_is_done, "everything is committed", 120, state=progress)
        aborts = [members.process(ordinal).text().count("a transaction was aborted") for ordinal in members.ordinals()]
        for ordinal in members.ordinals():
            assert members.terminate(ordinal) == 0
    assert sum(aborts) > 0
    seen = {
        (name, one.at.partition, one.at.offset + 1)
        for name, count in ((results_topic, RESULT_PARTITIONS), (dead_topic, 1))
        for one in read_committed(kafka.bootstrap, name, count)
    }
    assert told <= seen, sorted(told - seen)[:5]
    assert {name for name, _, _ in told} == {results_topic, dead_topic}
    figure(f"{len(told)} ends told by 3 processes, {sum(aborts)} transactions aborted in the last two")
