"""Exactly once: whatever happens to the members, a reader of committed records sees each input's result once."""

import itertools
import os
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.kafka import KafkaBroker
from tests.support.members import Members, spec_for
from tests.support.scale import scaled
from tests.support.traffic import Feeder, Traffic, read_committed
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.proves(38)]

MEMBERS = 3
KILLS = scaled(25, 200)
RESULT_PARTITIONS = 4
HANDLED_BETWEEN_KILLS = 1_500


@pytest.fixture
def wide_topic(kafka: KafkaBroker, unique: str) -> str:
    """Return a new topic of eight partitions."""
    name = f"{unique}-wide"
    kafka.create_topic(name, 8)
    return name


@pytest.fixture
def results_topic(kafka: KafkaBroker, unique: str) -> str:
    """Return a new topic that refuses records of more than 100 kB."""
    name = f"{unique}-results"
    kafka.create_topic(name, RESULT_PARTITIONS, {"max.message.bytes": "100000"})
    return name


def transactional(kafka: KafkaBroker, topic: str, group: str, results: str, **processing: Any) -> Any:
    """Return a spec whose results and offsets are committed together."""
    wished: dict[str, Any] = {"concurrency": {"fixed": 100}, "commitMode": "Transactional", **processing}
    return spec_for(kafka.bootstrap, topic, group, "with_result", results=results, **wished)


def counted(kafka: KafkaBroker, results: str) -> Counter[bytes | None]:
    """Return how often each value is in the results, to a reader of committed records."""
    return Counter(one.value for one in read_committed(kafka.bootstrap, results, RESULT_PARTITIONS))


def assert_each_once(found: Counter[bytes | None], produced: int) -> None:
    """Assert that the results are those of the inputs 0 to `produced`, each once."""
    twice = {value: count for value, count in found.items() if count > 1}
    assert not twice, f"{len(twice)} results are there more than once: {list(twice.items())[:5]}"
    missing = {b"%d" % number for number in range(produced)} - set(found)
    assert not missing, f"{len(missing)} results are missing: {sorted(missing)[:5]}"
    assert len(found) == produced


@pytest.mark.acceptance
@pytest.mark.timeout(scaled(400, 3600))
def test_each_input_has_one_result_after_kills(  # noqa: PLR0917 - fixtures, by name
    kafka: KafkaBroker,
    wide_topic: str,
    results_topic: str,
    group: str,
    tmp_path: Path,
    figure: Callable[[object], None],
) -> None:
    """Members die at full speed and return: committed results hold each input once, nothing twice, nothing missing."""
    began_s = time.monotonic()
    spec = transactional(kafka, wide_topic, group, results_topic).model_copy(update={"replicas": MEMBERS})
    traffic = Traffic(kafka.bootstrap, wide_topic)

    def progress() -> int:
        return kafka.committed_total(group, wide_topic)

    records = ((f"key-{number % 500}", b"%d" % number) for number in itertools.count())
    with Members("once", spec, tmp_path, work_ms=5) as members:
        for ordinal in range(MEMBERS):
            members.start(ordinal)
        for ordinal in range(MEMBERS):
            members.wait_status(ordinal, lambda status: bool(status.partitions), "owns partitions")
        with Feeder(traffic, records, 30_000, progress):
            for number in range(KILLS):
                victim = number % MEMBERS
                members.wait_status(
                    victim, lambda status: status.handled >= HANDLED_BETWEEN_KILLS, "is at full speed", timeout_s=60
                )
                members.kill(victim)
                members.start(victim)
        wait_until(lambda: progress() >= traffic.produced, "everything is committed", 120, state=progress)
        for ordinal in range(MEMBERS):
            assert members.terminate(ordinal) == 0
    assert_each_once(counted(kafka, results_topic), traffic.produced)
    figure(f"{KILLS} kills, {traffic.produced} inputs, each result once, {time.monotonic() - began_s:.0f} s")


def test_members_that_join_take_over_in_the_middle_of_transactions(
    kafka: KafkaBroker, wide_topic: str, results_topic: str, group: str, tmp_path: Path
) -> None:
    """Partitions move twice at full speed: what is given up was committed before, and is done once."""
    spec = transactional(kafka, wide_topic, group, results_topic).model_copy(update={"replicas": MEMBERS})
    traffic = Traffic(kafka.bootstrap, wide_topic)

    def progress() -> int:
        return kafka.committed_total(group, wide_topic)

    records = ((f"key-{number % 500}", b"%d" % number) for number in itertools.count())
    with Members("move", spec, tmp_path, work_ms=5) as members:
        members.start(0)
        with Feeder(traffic, records, 30_000, progress):
            members.wait_status(0, lambda status: status.handled > 3_000, "is at full speed")
            for ordinal in (1, 2):
                members.start(ordinal)
                members.wait_status(ordinal, lambda status: status.handled > 3_000, "took over")
        wait_until(lambda: progress() >= traffic.produced, "everything is committed", 120, state=progress)
        for ordinal in range(MEMBERS):
            assert members.terminate(ordinal) == 0
    assert_each_once(counted(kafka, results_topic), traffic.produced)


def test_a_result_that_the_broker_refuses_is_given_up_and_the_others_are_there_once(  # noqa: PLR0917 - as above
    kafka: KafkaBroker, topic: str, results_topic: str, group: str, unique: str, tmp_path: Path
) -> None:
    """It aborts its transaction; what shared it is done again, once; the record ends as a dead letter."""
    dead_topic = f"{unique}-dead"
    kafka.create_topic(dead_topic, 1, {"max.message.bytes": "2000000"})
    spec = transactional(kafka, topic, group, results_topic, retry={"maxAttempts": 2}, deadLetter={"topic": dead_topic})
    large = 200_000
    traffic = Traffic(kafka.bootstrap, topic)
    traffic.send((f"key-{n % 50}", b"%d" % n) for n in range(2_000))
    traffic.send([("large", os.urandom(large))])  # compressed, it would pass
    traffic.send((f"key-{n % 50}", b"%d" % n) for n in range(2_000, 4_000))
    with Members("refused", spec, tmp_path, work_ms=2) as members:
        members.start(0)
        members.wait_status(
            0, lambda status: status.dead_lettered > 0 and status.lag == 0, "handled everything", timeout_s=60
        )
        assert members.terminate(0) == 0
    assert_each_once(counted(kafka, results_topic), 4_000)
    (dead,) = read_committed(kafka.bootstrap, dead_topic, 1)
    assert dead.key == b"large"
    assert b"refused" in (dead.headers["parallel-consumer-dead-letter-message"] or b"")


def test_an_open_transaction_is_seen_by_nobody(
    kafka: KafkaBroker, topic: str, results_topic: str, group: str, tmp_path: Path
) -> None:
    """Killed before the interval is over: no result, no offset; the next life does it all, once."""
    spec = transactional(kafka, topic, group, results_topic, commitInterval="10s")
    traffic = Traffic(kafka.bootstrap, topic)
    traffic.send((f"key-{n % 50}", b"%d" % n) for n in range(1_000))
    with Members("open", spec, tmp_path, work_ms=1) as members:
        members.start(0)
        members.wait_status(0, lambda status: status.results == 1_000, "has produced everything")
        members.kill(0)
        assert counted(kafka, results_topic) == Counter()
        assert kafka.committed_total(group, topic) == 0
        members.start(0)
        members.wait_status(0, lambda status: status.results == 1_000, "has produced everything again")
        assert members.terminate(0) == 0
    assert_each_once(counted(kafka, results_topic), 1_000)


def test_brokers_that_take_less_metadata_end_the_member_and_it_names_the_field(tmp_path: Path) -> None:
    """A map that is cut would let results be seen twice: the member ends instead, and nothing is committed without its map."""
    with KafkaBroker(properties={"offset.metadata.max.bytes": "8"}) as small:
        small.create_topic("in", 1)
        small.create_topic("out", RESULT_PARTITIONS)
        traffic = Traffic(small.bootstrap, "in")
        # Every third waits for the one before it: the others overtake them, and only a map can tell of those.
        traffic.send((f"key-{number if number % 3 else 0}", b"%d" % number) for number in range(5_000))
        with Members("small", transactional(small, "in", "group", "out"), tmp_path, work_ms=5) as members:
            running = members.start(0)
            wait_until(lambda: running.process.exit_code is not None, "it ended", 60, state=running.process.tail)
            assert running.process.exit_code == 75
            assert "let spec.kafka.offsetMetadataMaxBytes be no more than" in running.process.tail()
        assert max(counted(small, "out").values(), default=1) == 1
