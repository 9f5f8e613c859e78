"""What the manifest promises, seen from outside on a real broker: orderings, commit modes, slow records, pauses, metrics."""

import itertools
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from parallel_consumer_runtime.settings import ParallelConsumerSpec
from tests.support.checkers import every_checker, judge, report
from tests.support.history import End, Start, read_history
from tests.support.kafka import KafkaBroker
from tests.support.members import Members, spec_for
from tests.support.traffic import Traffic
from tests.support.waiting import wait_until


def changed(spec: ParallelConsumerSpec, **processing: Any) -> ParallelConsumerSpec:
    """Return the spec with fields of spec.processing as a user writes them."""
    document = spec.model_dump(mode="json", by_alias=True, exclude_unset=True)
    document["processing"].update(processing)
    return ParallelConsumerSpec.model_validate(document)


def metric(members: Members, ordinal: int, name: str) -> float | None:
    """Return a metric's value, None while the member does not answer or has none."""
    for line in (members.get(ordinal, "/metrics") or "").splitlines():
        if line.startswith(f"parallel_consumer_{name} "):
            return float(line.split()[-1])
    return None


def await_metric(members: Members, name: str, holds: Callable[[float], bool], what: str) -> float:
    """Return a metric's first value for which a condition holds."""
    found: list[float] = []

    def probe() -> bool:
        value = metric(members, 0, name)
        if value is not None and holds(value):
            found.append(value)
        return bool(found)

    wait_until(probe, f"{name} {what}", 30, state=lambda: metric(members, 0, name))
    return found[0]


@pytest.mark.proves(1)
@pytest.mark.parametrize(("ordering", "most"), [("Partition", 1), ("Key", 20), ("Unordered", 64)])
def test_orderings(  # noqa: PLR0917 - fixtures, by name
    kafka: KafkaBroker, topic: str, group: str, tmp_path: Path, ordering: str, most: int
) -> None:
    """The history of real calls: nothing beside a record of its shard, everything else in parallel."""
    spec = spec_for(kafka.bootstrap, topic, group, "on_record", ordering=ordering, concurrency={"fixed": 64})
    with Members("order", spec, tmp_path, work_ms=2) as members:
        traffic = Traffic(kafka.bootstrap, topic, members.history)
        traffic.send((f"key-{n % 20}", b"x") for n in range(3000))
        members.start(0)
        members.wait_status(0, lambda status: status.handled == 3000, "handled everything", timeout_s=60)
        partitions = len(kafka.end_offsets(topic))
        assert members.terminate(0) == 0
    events = read_history(members.history_path)
    running = peak = 0
    beside: dict[int, int] = {}
    for event in events:
        if not isinstance(event, Start | End):
            continue
        step = 1 if isinstance(event, Start) else -1
        running += step
        peak = max(peak, running)
        place = event.at.partition
        beside[place] = beside.get(place, 0) + step
        assert ordering != "Partition" or beside[place] <= 1
    assert peak <= (partitions if ordering == "Partition" else most)
    assert peak >= (2 if ordering == "Partition" else most * 0.8)
    if ordering != "Unordered":
        violations = judge(events, every_checker())
        assert not violations, report(violations)


@pytest.mark.proves(6)
@pytest.mark.parametrize("mode", ["Async", "Sync"])
def test_commits_by_interval(kafka: KafkaBroker, topic: str, group: str, tmp_path: Path, mode: str) -> None:
    """The broker holds a commit soon after each interval, in both modes, and the rest at the end."""
    spec = spec_for(kafka.bootstrap, topic, group, "on_record", commitMode=mode, commitInterval="200ms")
    with Members("commits", spec, tmp_path, work_ms=2) as members:
        Traffic(kafka.bootstrap, topic).send((f"key-{n}", b"x") for n in range(10_000))
        members.start(0)
        members.wait_status(0, lambda status: status.handled > 1000, "is in the middle")
        wait_until(lambda: kafka.committed_total(group, topic) > 500, "a commit is seen in the middle", 10)
        assert await_metric(members, "commits_total", lambda value: value >= 2, "grows") >= 2
        members.wait_status(0, lambda status: status.handled == 10_000, "handled everything", timeout_s=60)
        assert members.terminate(0) == 0
    assert kafka.committed_total(group, topic) == 10_000


@pytest.mark.proves(6)
def test_commits_by_count(kafka: KafkaBroker, topic: str, group: str, tmp_path: Path) -> None:
    """With an interval of a minute, a thousand completed records are committed long before."""
    spec = spec_for(
        kafka.bootstrap, topic, group, "on_record", commitInterval="60s", commitRecords=1000, concurrency={"fixed": 50}
    )
    with Members("count", spec, tmp_path, work_ms=2) as members:
        Traffic(kafka.bootstrap, topic).send((f"key-{n}", b"x") for n in range(5000))
        members.start(0)
        began_s = time.monotonic()
        wait_until(lambda: kafka.committed_total(group, topic) >= 4000, "commits by count", 30)
        assert time.monotonic() - began_s < 30


@pytest.mark.proves(12)
@pytest.mark.proves(8)
def test_a_record_that_hangs_is_named_and_holds_nothing_else(
    kafka: KafkaBroker, topic: str, group: str, tmp_path: Path
) -> None:
    """Status, metric and log name its partition, offset, age and key hash; a hundred thousand records above it are done."""
    spec = spec_for(
        kafka.bootstrap,
        topic,
        group,
        "hold_in_first_life",
        slowAfter="300ms",
        stuckAfter="1s",
        drainTimeout="0s",
        concurrency={"fixed": 200},
    )
    with Members("slow", spec, tmp_path, work_ms=1) as members:
        traffic = Traffic(kafka.bootstrap, topic)
        traffic.send([("held", b"hold")])
        traffic.send((f"key-{n % 5000}", b"x") for n in range(60_000))
        members.start(0)
        status = members.wait_status(0, lambda status: status.handled == 60_000, "did the rest", timeout_s=60)
        head = status.head_of_line
        assert head is not None
        assert head.age_s > 0.3
        assert head.key_hash is not None
        assert await_metric(members, "slow_total", lambda value: value >= 1, "counts it") == 1
        assert await_metric(members, "head_of_line_age_seconds", lambda value: value > 0.3, "tells its age") > 0
        log = members.process(0).text()
        assert f"{topic}[{head.partition}]@{head.offset} runs for" in log
        assert head.key_hash in log
        assert "held" not in log.replace("held back", ""), "keys are nobody else's business"
        words = wait_until(lambda: members.refusal(0, "/healthz"), "it is unhealthy", 30)
        assert re.match(
            rf"{topic}\[{head.partition}\]@{head.offset} runs for [0-9]+ s: longer than spec.processing", words
        )


@pytest.mark.proves(16)
@pytest.mark.proves(18)
@pytest.mark.proves(22)
@pytest.mark.proves(23)
def test_rates_ignored_keys_and_pause_are_live_and_measured(
    kafka: KafkaBroker, topic: str, group: str, tmp_path: Path
) -> None:
    """Throttled, ignored, paused and starved in one life, each read back from /metrics; the group never moves."""
    spec = spec_for(kafka.bootstrap, topic, group, "on_record", rateLimit={"recordsPerPartition": 20})
    with Members("rates", spec, tmp_path, work_ms=1) as members:
        traffic = Traffic(kafka.bootstrap, topic)
        traffic.send((f"key-{n % 50}", b"x") for n in range(2000))
        members.start(0)
        members.wait_status(0, lambda status: status.handled > 50, "runs")
        before, pid = kafka.group(group), members.process(0).pid
        await_metric(members, "gated", lambda value: value > 0, "counts what waits for its rate")
        await_metric(members, "queued_seconds_total", lambda value: value > 1, "adds up the time in queues")
        handled, began_s = members.wait_status(0, lambda _: True, "tells").handled, time.monotonic()
        later = members.wait_status(0, lambda status: status.handled >= handled + 160, "goes on at its rate")
        partitions = len(kafka.end_offsets(topic))
        rate = (later.handled - handled) / (time.monotonic() - began_s)
        assert rate < 20 * partitions * 1.3
        members.apply(changed(spec, rateLimit={"records": 0}))
        paused = members.wait_status(0, lambda status: status.in_flight == 0, "stops")
        assert paused.handled < 2000
        members.apply(changed(spec, rateLimit={}, ignoredKeys=["key-7"]))
        members.wait_status(0, lambda status: status.lag == 0, "handled the rest")
        assert await_metric(members, "ignored_total", lambda value: value > 0, "counts them") <= 40
        await_metric(members, "starved", lambda value: value == 1, "says that nothing is there to do")
        assert kafka.group(group) == before
        assert members.process(0).pid == pid


@pytest.mark.proves(5)
@pytest.mark.proves(17)
@pytest.mark.proves(22)
def test_a_full_partition_is_paused_alone_and_stays_so_over_a_rebalance(
    kafka: KafkaBroker, topic: str, group: str, tmp_path: Path
) -> None:
    """A stuck record fills its partition: it is paused, the others go on, and a member that joins changes nothing of that."""
    bounds = {"recordsPerPartition": 500, "records": 20_000}
    spec = spec_for(
        kafka.bootstrap,
        topic,
        group,
        "hold_in_first_life",
        ordering="Partition",
        concurrency={"fixed": 16},
        buffer=bounds,
        drainTimeout="0s",
    ).model_copy(update={"replicas": 2})
    with Members("full", spec, tmp_path, work_ms=0.1) as members:
        traffic = Traffic(kafka.bootstrap, topic)
        traffic.send([("stuck", b"hold")])
        numbers = itertools.count()
        traffic.send((f"key-{next(numbers) % 100}", b"x") for _ in range(20_000))
        members.start(0)

        def paused(ordinal: int) -> list[int]:
            status = members.status(ordinal)
            return [one.partition for one in status.partitions if one.paused] if status else []

        hanging = members.wait_status(
            0, lambda status: bool(status.head_of_line and status.head_of_line.age_s > 1), "hangs"
        )
        assert hanging.head_of_line is not None
        stuck = hanging.head_of_line.partition
        wait_until(lambda: paused(0) == [stuck], "it alone is paused", 30, state=lambda: members.status(0))
        await_metric(members, "paused_partitions", lambda value: value == 1, "counts it")
        members.start(1)
        members.wait_status(1, lambda status: bool(status.partitions), "joined")
        status = members.wait_status(0, lambda status: status.rebalances > 0, "gave partitions up")
        for one in status.partitions:
            assert one.buffered <= 500 + 1000, "the bound, and a batch that was on its way"
        owner = 0 if stuck in [one.partition for one in status.partitions] else 1
        if owner == 0:
            wait_until(lambda: stuck in paused(0), "it is still paused", 10)
        others = sum(end for partition, end in kafka.end_offsets(topic).items() if partition != stuck)

        def done_beside_it() -> bool:
            commits = kafka.committed(group, topic)
            return sum(commit.offset for partition, commit in commits.items() if partition != stuck) == others

        wait_until(done_beside_it, "the other partitions are done", 60)
