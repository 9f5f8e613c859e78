"""Where a group begins that has no commit, or one outside of the log: each policy, and never twice decided."""

from pathlib import Path

import pytest

from parallel_consumer_runtime.settings import ParallelConsumerSpec
from tests.support.filling import Placed, delete_below, fill
from tests.support.history import Position, Start, read_so_far
from tests.support.kafka import KafkaBroker
from tests.support.kafka_view import Committed
from tests.support.members import Members, spec_for
from tests.support.waiting import wait_until

PARTITIONS = 4
GONE = {"below the log's start": Committed(10, ""), "beyond the log's end": Committed(500, "")}


def _spec(kafka: KafkaBroker, topic: str, group: str, reset: str) -> ParallelConsumerSpec:
    spec = spec_for(kafka.bootstrap, topic, group, "on_record", concurrency={"fixed": 50})
    settings = {**spec.kafka.model_dump(mode="json", by_alias=True, exclude_unset=True), "autoOffsetReset": reset}
    return spec.model_copy(update={"kafka": type(spec.kafka).model_validate(settings)})


def _fill(kafka: KafkaBroker, topic: str, count: int = 100) -> None:
    fill(kafka.bootstrap, topic, (Placed(p, f"key-{n % 7}") for n in range(count) for p in range(PARTITIONS)))


def _handled(members: Members) -> dict[int, list[int]]:
    """Return the offsets of each partition in the order in which they were begun."""
    begun = [event.at for event in read_so_far(members.history_path) if type(event) is Start]
    return {p: [at.offset for at in begun if at.partition == p] for p in {at.partition for at in begun}}


def _wait_handled(members: Members, topic: str, expected: set[tuple[int, int]]) -> None:
    """Wait until so many records were begun, and check that they are the expected ones, each once."""

    def begun() -> list[Position]:
        return [event.at for event in read_so_far(members.history_path) if type(event) is Start]

    wait_until(lambda: len(begun()) >= len(expected), f"{len(expected)} records are handled", 30)
    assert sorted(begun()) == sorted(Position(topic, *at) for at in expected)


def _range(start: int, end: int, partitions: int = PARTITIONS) -> set[tuple[int, int]]:
    return {(partition, offset) for partition in range(partitions) for offset in range(start, end)}


@pytest.mark.proves(28)
def test_earliest_begins_at_the_logs_start(kafka: KafkaBroker, topic: str, group: str, tmp_path: Path) -> None:
    """Without a commit, everything that the log holds is handled, and committed."""
    _fill(kafka, topic)
    with Members("earliest", _spec(kafka, topic, group, "Earliest"), tmp_path, work_ms=0) as members:
        members.start(0)
        _wait_handled(members, topic, _range(0, 100))
        wait_until(lambda: kafka.committed_total(group, topic) == 400, "committed", 30)


@pytest.mark.proves(28)
def test_latest_begins_at_the_logs_end_and_stays_there(
    kafka: KafkaBroker, topic: str, group: str, tmp_path: Path
) -> None:
    """What was there is skipped, what comes is handled, also what comes while a member that handled nothing is away."""
    _fill(kafka, topic)
    with Members("latest", _spec(kafka, topic, group, "Latest"), tmp_path, work_ms=0) as members:
        members.start(0)
        members.wait_status(0, lambda status: len(status.partitions) == PARTITIONS, "owns the partitions")
        # The end is committed at once, before anything was handled: this is what makes it stay.
        at_end = dict.fromkeys(range(PARTITIONS), Committed(100, ""))
        wait_until(lambda: kafka.committed(group, topic) == at_end, "the end is committed", 30)
        members.kill(0)
        _fill(kafka, topic, 10)
        members.start(0)
        _wait_handled(members, topic, _range(100, 110))
        _fill(kafka, topic, 10)
        _wait_handled(members, topic, _range(100, 120))


@pytest.mark.proves(28)
def test_error_ends_the_process_and_says_what_to_do(kafka: KafkaBroker, topic: str, group: str, tmp_path: Path) -> None:
    """Without a commit: exit status 78, one sentence that names the field and the way out; nothing is handled."""
    _fill(kafka, topic)
    with Members("error", _spec(kafka, topic, group, "Error"), tmp_path, work_ms=0) as members:
        process = members.start(0).process
        assert process.wait(30) == 78
        assert "spec.kafka.autoOffsetReset is Error" in process.text()
        assert "`pconsumer offsets reset`" in process.text()
        assert "Traceback" not in process.text()
        assert _handled(members) == {}
    assert kafka.committed(group, topic) == {}


@pytest.mark.proves(28)
@pytest.mark.parametrize("commit", GONE.values(), ids=GONE)
def test_earliest_resumes_at_the_logs_start_when_its_commit_is_gone(
    kafka: KafkaBroker, topic: str, group: str, tmp_path: Path, commit: Committed
) -> None:
    """Retention took what was committed, or the log began anew: every record that is left is handled once."""
    _fill(kafka, topic)
    delete_below(kafka.bootstrap, topic, {0: 50, 1: 50})
    kafka.commit(group, topic, dict.fromkeys(range(PARTITIONS), commit))
    in_range = _range(10, 100) - _range(0, 50, 2) if commit.offset == 10 else _range(0, 100) - _range(0, 50, 2)
    with Members("gone", _spec(kafka, topic, group, "Earliest"), tmp_path, work_ms=0) as members:
        members.start(0)
        _wait_handled(members, topic, in_range)
        wait_until(lambda: kafka.committed_total(group, topic) == 400, "committed", 30)
        for offsets in _handled(members).values():
            assert len(offsets) == len(set(offsets))


@pytest.mark.proves(28)
@pytest.mark.parametrize("commit", GONE.values(), ids=GONE)
def test_latest_resumes_at_the_logs_end_when_its_commit_is_gone(
    kafka: KafkaBroker, topic: str, group: str, tmp_path: Path, commit: Committed
) -> None:
    """Only where the commit is gone; settled once, so that a restart skips nothing more."""
    _fill(kafka, topic)
    delete_below(kafka.bootstrap, topic, {0: 50})
    kafka.commit(group, topic, {0: commit, **dict.fromkeys(range(1, PARTITIONS), Committed(90, ""))})
    with Members("gone", _spec(kafka, topic, group, "Latest"), tmp_path, work_ms=0) as members:
        members.start(0)
        wait_until(lambda: kafka.committed(group, topic)[0].offset == 100, "the end is committed", 30)
        members.kill(0)
        _fill(kafka, topic, 10)
        members.start(0)
        _wait_handled(members, topic, _range(90, 110) - {(0, offset) for offset in range(90, 100)})


@pytest.mark.proves(28)
@pytest.mark.parametrize("commit", GONE.values(), ids=GONE)
def test_error_ends_the_process_when_its_commit_is_gone(
    kafka: KafkaBroker, topic: str, group: str, tmp_path: Path, commit: Committed
) -> None:
    """Exit status 78, and the commit is left as it is."""
    _fill(kafka, topic)
    delete_below(kafka.bootstrap, topic, {0: 50})
    kafka.commit(group, topic, {0: commit, **dict.fromkeys(range(1, PARTITIONS), Committed(100, ""))})
    with Members("gone", _spec(kafka, topic, group, "Error"), tmp_path, work_ms=0) as members:
        process = members.start(0).process
        assert process.wait(30) == 78
        assert "spec.kafka.autoOffsetReset is Error" in process.text()
        assert _handled(members) == {}
    assert kafka.committed(group, topic)[0] == commit
