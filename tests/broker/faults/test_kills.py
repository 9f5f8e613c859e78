"""The kill loop: processes die at full speed and return; the history says what that cost, fault by fault."""

import itertools
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.checkers import DuplicatesWithinBound, every_checker, judge, report
from tests.support.commit_watch import CommitWatch
from tests.support.history import read_history
from tests.support.kafka import KafkaBroker
from tests.support.members import Members, spec_for
from tests.support.scale import scaled
from tests.support.traffic import Feeder, Traffic
from tests.support.waiting import wait_until

pytestmark = pytest.mark.acceptance

MEMBERS = 3
KILLS = scaled(25, 200)
RESTARTS = scaled(20, 50)
KEYS = 100
RECORDS_MIN = 100_000
BACKLOG = 40_000
COMMIT_INTERVAL_S = 0.1
COMMIT_LATENCY_S = 0.1
"""What a commit takes from plan to acknowledgement with every core busy; what at least half of the kills keep to."""
COMMIT_LATENCY_MAX_S = 0.2
"""What it takes at most, beside the coordinator's slowest answer in the run; what every kill keeps to."""
HANDLED_BETWEEN_FAULTS = 3_000


class _Loop:
    """Three members at full speed, with enough records ahead of them."""

    def __init__(self, kafka: KafkaBroker, topic: str, group: str, folder: Path) -> None:
        spec = spec_for(
            kafka.bootstrap,
            topic,
            group,
            "on_record",
            concurrency={"fixed": 100},
            commitInterval="100ms",
        ).model_copy(update={"replicas": MEMBERS})
        self.members = Members("kill", spec, folder, work_ms=5)
        self.traffic = Traffic(kafka.bootstrap, topic, self.members.history)
        self.watch = CommitWatch(kafka.bootstrap, group, topic, self.members.history)
        records = ((f"key-{number % KEYS}", b"x" * 100) for number in itertools.count())
        self.feeder = Feeder(self.traffic, records, BACKLOG, lambda: self.watch.total)

    def running(self, ordinal: int) -> None:
        """Wait until a member has handled its share of this life."""
        self.members.wait_status(ordinal, lambda status: status.handled >= HANDLED_BETWEEN_FAULTS, "is at full speed")


@contextmanager
def _running(kafka: KafkaBroker, topic: str, group: str, folder: Path) -> Generator[_Loop]:
    loop = _Loop(kafka, topic, group, folder)
    with loop.members, loop.watch:
        for ordinal in range(MEMBERS):
            loop.members.start(ordinal)
        for ordinal in range(MEMBERS):
            loop.members.wait_status(ordinal, lambda status: bool(status.partitions), "owns partitions")
        with loop.feeder:
            yield loop
            wait_until(lambda: loop.traffic.produced >= RECORDS_MIN, f"{RECORDS_MIN} records are produced", 60)
        wait_until(lambda: loop.watch.total >= loop.traffic.produced, "everything is committed", 60)
        for ordinal in range(MEMBERS):
            assert loop.members.terminate(ordinal) == 0


def _judged(loop: _Loop, started: float, figure: Callable[[object], None]) -> None:
    events = read_history(loop.members.history_path)
    latency_max_s = COMMIT_LATENCY_MAX_S + loop.watch.slowest_s
    bound = DuplicatesWithinBound(commit_interval_s=COMMIT_INTERVAL_S, commit_latency_s=latency_max_s)
    usual = DuplicatesWithinBound(commit_interval_s=COMMIT_INTERVAL_S, commit_latency_s=COMMIT_LATENCY_S)
    costs = [cost for cost in bound.costs(events) if cost.rate]
    worst = max(costs, key=lambda cost: cost.duplicates)
    figure(f"{len(costs)} faults, {sum(cost.duplicates for cost in costs)} handled again; most of them by {worst}")
    elapsed_s = time.monotonic() - started
    figure(
        f"{loop.traffic.produced} records, {len(events)} events, {elapsed_s:.0f} s, slowest answer {loop.watch.slowest_s * 1000:.0f} ms"
    )
    checkers = every_checker(commit_interval_s=COMMIT_INTERVAL_S, commit_latency_s=latency_max_s)
    violations = judge(events, checkers)
    assert not violations, report(violations)
    over = [cost for cost in usual.costs(events) if not cost.kept]
    assert len(over) <= KILLS // 2, "\n".join(map(str, over))


@pytest.mark.timeout(scaled(400, 3600))
@pytest.mark.proves(9)
def test_kills_lose_nothing_and_cost_a_bounded_number_of_repeats(
    kafka: KafkaBroker, wide_topic: str, group: str, tmp_path: Path, figure: Callable[[object], None]
) -> None:
    """Nothing lost, keys in order but for rewinds to a commit, no overlap, repeats within the bound for each kill."""
    started = time.monotonic()
    with _running(kafka, wide_topic, group, tmp_path) as loop:
        for number in range(KILLS):
            victim = number % MEMBERS
            loop.running(victim)
            loop.members.kill(victim)
            loop.members.start(victim)
    _judged(loop, started, figure)


@pytest.mark.timeout(scaled(400, 3600))
@pytest.mark.proves(10, 26)
def test_rolling_restarts_repeat_nothing(
    kafka: KafkaBroker, wide_topic: str, group: str, tmp_path: Path, figure: Callable[[object], None]
) -> None:
    """SIGTERM drains and commits: not one record is handled twice, and the generation does not move."""
    started = time.monotonic()
    with _running(kafka, wide_topic, group, tmp_path) as loop:
        generation = kafka.group(group).generation
        for number in range(RESTARTS):
            victim = number % MEMBERS
            loop.running(victim)
            assert loop.members.terminate(victim) == 0
            loop.members.start(victim)
        for ordinal in range(MEMBERS):
            loop.running(ordinal)
        assert kafka.group(group).generation == generation
    _judged(loop, started, figure)
