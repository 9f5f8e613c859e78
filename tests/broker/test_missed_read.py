"""What automatic and early commits get wrong, shown not to happen: a kill on either side of the commit.

A consumer that commits what it polled misses what it had polled and not handled; one that commits every few seconds
repeats seconds of work. Here a commit says exactly what is complete, so the kill costs what it does not say.
"""

from pathlib import Path

import pytest

from parallel_consumer_runtime.offsets import decode
from parallel_consumer_runtime.settings import ParallelConsumerSpec
from tests.support.checkers import NothingLost, judge, report
from tests.support.history import End, Event, Position, Start, read_history, read_so_far
from tests.support.kafka import KafkaBroker
from tests.support.kafka_view import Committed
from tests.support.members import Members, spec_for
from tests.support.traffic import Traffic
from tests.support.waiting import wait_until

PARTITIONS = 4
WAVE = 2000


def _complete(commits: dict[int, Committed], at: Position) -> bool:
    """Whether the commits say that a record is complete."""
    if (commit := commits.get(at.partition)) is None:
        return False
    known = decode(commit.metadata, commit.offset)
    mapped = at.offset <= known.highest and not any(first <= at.offset <= last for first, last in known.incomplete)
    return at.offset < commit.offset or mapped


def _begun(events: list[Event], incarnation: str) -> list[Position]:
    return [event.at for event in events if type(event) is Start and event.life.incarnation == incarnation]


def _ended(events: list[Event]) -> set[Position]:
    return {event.at for event in events if type(event) is End}


def _with_commits_every(spec: ParallelConsumerSpec, seconds: float) -> ParallelConsumerSpec:
    return spec.model_copy(update={"processing": spec.processing.model_copy(update={"commit_interval": seconds})})


@pytest.mark.proves(33)
def test_killed_between_handling_and_commit_only_what_no_commit_tells_is_handled_again(
    kafka: KafkaBroker, topic: str, group: str, tmp_path: Path
) -> None:
    """Handled and not committed: again, all of it, and nothing of what was committed before."""
    spec = spec_for(kafka.bootstrap, topic, group, "on_record", concurrency={"fixed": 20}, commitInterval="50ms")
    with Members("late", spec, tmp_path, work_ms=2) as members:
        traffic = Traffic(kafka.bootstrap, topic, members.history)
        traffic.send((f"key-{n % 300}", b"x") for n in range(WAVE))
        members.start(0)
        wait_until(lambda: kafka.committed_total(group, topic) == WAVE, "committed", 30)
        live = members.apply(_with_commits_every(spec, 60.0))
        members.wait_status(0, lambda status: status.revision == live.revision, "commits no more")
        traffic.send((f"key-{n % 300}", b"x") for n in range(WAVE))
        members.wait_status(0, lambda status: status.handled == 2 * WAVE, "handled the second wave")
        members.kill(0)
        commits, before = kafka.committed(group, topic), read_history(members.history_path)
        untold = {at for at in _begun(before, "1") if not _complete(commits, at)}
        assert len(untold) > WAVE // 2, "the second wave was committed: the kill fell on the wrong side"
        members.apply(spec)
        members.start(0)
        wait_until(lambda: kafka.committed_total(group, topic) == 2 * WAVE, "committed", 30)
        assert members.terminate(0) == 0
    events = read_history(members.history_path)
    again = _begun(events, "2")
    assert sorted(again) == sorted(untold)
    assert not (violations := judge(events, [NothingLost()])), report(violations)


@pytest.mark.proves(33)
def test_killed_between_commit_and_handling_nothing_that_was_polled_is_missed(
    kafka: KafkaBroker, topic: str, group: str, tmp_path: Path
) -> None:
    """Polled, not handled, and commits made beyond it: it is handled after the kill, and what was complete is not."""
    spec = spec_for(kafka.bootstrap, topic, group, "hold_in_first_life", concurrency={"fixed": 20})
    with Members("early", spec, tmp_path, work_ms=1) as members:
        traffic = Traffic(kafka.bootstrap, topic, members.history)
        # Eight stuck records, with 50 of their keys behind them, below everything else.
        traffic.send((f"stuck-{n}", b"hold") for n in range(8))
        traffic.send((f"stuck-{n % 8}", b"x") for n in range(50))
        traffic.send((f"key-{n % 300}", b"x") for n in range(WAVE))
        members.start(0)

        def all_told() -> bool:
            """Whether the commits tell everything that is not stuck."""
            commits = kafka.committed(group, topic)
            events = read_so_far(members.history_path)
            return len(_ended(events)) == WAVE and all(_complete(commits, at) for at in _ended(events))

        wait_until(all_told, "commits beyond the stuck records", 30)
        members.kill(0)
        before = read_history(members.history_path)
        stuck = {at for at in _begun(before, "1") if at not in _ended(before)}
        assert len(stuck) == 8
        commits = kafka.committed(group, topic)
        lowest = {p: min(at.offset for at in stuck if at.partition == p) for p in {at.partition for at in stuck}}
        assert {p: commits[p].offset for p in lowest} == lowest
        assert all(decode(commits[p].metadata, commits[p].offset).highest > commits[p].offset for p in lowest)
        members.start(0)
        everything = WAVE + 58
        wait_until(lambda: kafka.committed_total(group, topic) == everything, "commits", 30)
        assert members.terminate(0) == 0
    events = read_history(members.history_path)
    again = _begun(events, "2")
    assert len(again) == len(set(again)) == 58
    assert stuck <= set(again)
    assert not set(again) & _ended(before)
    assert not (violations := judge(events, [NothingLost()])), report(violations)
