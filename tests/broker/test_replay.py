"""`pconsumer replay` on a real broker: exactly the range, in key order, and the group never notices."""

import json
import os
import signal
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

from parallel_consumer_runtime.settings import ParallelConsumerSpec
from tests.support.checkers import KeyOrder, OneAtATime, judge, report
from tests.support.filling import Placed, delete_below, fill
from tests.support.history import End, Event, Outcome, Position, Start, read_history, read_so_far
from tests.support.kafka import KafkaBroker
from tests.support.kafka_view import Committed, GroupView
from tests.support.manifests import COMMAND, pconsumer, write_manifest
from tests.support.members import Members, spec_for
from tests.support.processes import REPOSITORY, TiedProcess
from tests.support.recording import environment
from tests.support.traffic import read_topic
from tests.support.waiting import wait_until

PARTITIONS = 4
RECORDS = 500
"""Of each partition."""
FIRST_TIME_MS = 1_767_323_000_000
"""2026-01-02T03:03:20Z; each record of a partition is one second after the one before."""


@pytest.fixture
def topic(kafka: KafkaBroker, unique: str) -> str:
    """Return a new topic of 4 partitions that keeps records of long ago."""
    kafka.create_topic(unique, 4, {"retention.ms": "-1"})
    return unique


def _fill(kafka: KafkaBroker, topic: str, *, value: bytes = b"x") -> None:
    fill(
        kafka.bootstrap,
        topic,
        (
            Placed(p, f"{p}-{n % 17}", value, FIRST_TIME_MS + 1000 * n)
            for n in range(RECORDS)
            for p in range(PARTITIONS)
        ),
    )


class _Replays:
    """Replays of one manifest, and what they handled."""

    def __init__(self, spec: ParallelConsumerSpec, folder: Path, *, work_ms: float = 2) -> None:
        folder.mkdir(exist_ok=True)
        self.path = write_manifest(folder, "orders", spec)
        self.history = folder / "replay-history"
        self.history.touch()
        self.env = {**environment(self.history, "1", work_ms), "PYTHONPATH": str(REPOSITORY)}

    def command(self, *options: str) -> tuple[str, ...]:
        """Return the verb with its options."""
        return ("replay", "-f", str(self.path), "--path", str(REPOSITORY), *options)

    def run(self, *options: str) -> str:
        """Replay to the end and return the summary."""
        ran = pconsumer(*self.command(*options), env=self.env)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    def events(self) -> list[Event]:
        """Return what was handled, once the order and the overlap of keys were found good."""
        events = read_history(self.history)
        violations = judge(events, [KeyOrder(), OneAtATime()])
        assert not violations, report(violations)
        return events

    def handled(self) -> Counter[Position]:
        """Return how often each record was handled."""
        return Counter(event.at for event in self.events() if type(event) is End and event.outcome is Outcome.DONE)


def _range(topic: str, partitions: Iterable[int], start: int, end: int) -> Counter[Position]:
    return Counter(Position(topic, partition, offset) for partition in partitions for offset in range(start, end))


@pytest.mark.proves(31)
def test_a_replay_beside_a_running_group_handles_its_range_and_leaves_the_group_alone(
    kafka: KafkaBroker, topic: str, group: str, tmp_path: Path
) -> None:
    """The group runs on: same offsets, same generation, same members before and after; each record of the range once."""
    _fill(kafka, topic)
    spec = spec_for(kafka.bootstrap, topic, group, "on_record", concurrency={"fixed": 50})
    with Members("orders", spec, tmp_path, work_ms=0) as members:
        members.start(0)
        members.wait_status(0, lambda status: status.handled == RECORDS * PARTITIONS, "handled everything")
        total = RECORDS * PARTITIONS
        wait_until(lambda: kafka.committed_total(group, topic) == total, "committed", 30)

        def state() -> tuple[dict[int, Committed], GroupView]:
            return kafka.committed(group, topic), kafka.group(group)

        before = state()
        replays = _Replays(spec, tmp_path)
        said = replays.run("--from", "offset:100", "--to", "offset:400")
        assert state() == before
        assert kafka.group(f"{group}-replay").state == "DEAD", "a group came into being"
        status = members.status(0)
        assert status is not None
        assert (status.handled, status.rebalances) == (total, 0)
        assert members.terminate(0) == 0
    assert said.startswith("1,200 records in ")
    assert ": 0 failures, 0 dead letters, 0 results" in said
    assert replays.handled() == _range(topic, range(PARTITIONS), 100, 400)


@pytest.mark.proves(31)
def test_a_replay_by_time_handles_the_records_of_that_time(
    kafka: KafkaBroker, topic: str, group: str, tmp_path: Path
) -> None:
    """From the first record that is not older, without the first that is not older than the end; partitions by choice."""
    _fill(kafka, topic)
    kafka.commit(group, topic, {0: Committed(7, "bAALLgIA")})
    replays = _Replays(spec_for(kafka.bootstrap, topic, group, "on_record"), tmp_path)
    times = ("--from", "2026-01-02T03:05:00Z", "--to", "2026-01-02T04:08:20.500+01:00")
    replays.run(*times, "--partition", "1", "--partition", "3", "--concurrency", "40")
    assert replays.handled() == _range(topic, (1, 3), 100, 301)
    assert kafka.committed(group, topic) == {0: Committed(7, "bAALLgIA")}
    # Another zone's way to write the same second, and a range behind every record.
    assert "0 records in" in replays.run("--from", "2026-01-02T03:11:40Z", "--to", "2030-01-01T00:00:00Z")


@pytest.mark.proves(31)
@pytest.mark.parametrize(
    ("worker", "ordering"),
    [("Async", "Partition"), ("Async", "Unordered"), ("Thread", "Key"), ("Process", "Key"), ("Process", "Partition")],
)
def test_a_whole_log_is_replayed_as_the_manifest_orders_it(  # noqa: PLR0917 - pytest passes by name
    kafka: KafkaBroker, topic: str, group: str, tmp_path: Path, worker: str, ordering: str
) -> None:
    """From the log's start, which retention has moved, to its end, with every worker and every ordering."""
    _fill(kafka, topic)
    delete_below(kafka.bootstrap, topic, {0: 50})
    handler = "on_record" if worker == "Async" else "on_record_in_thread"
    spec = spec_for(kafka.bootstrap, topic, group, handler, worker=worker, ordering=ordering, concurrency={"fixed": 30})
    replays = _Replays(spec, tmp_path)
    replays.run("--from", "earliest", "--to", "latest")
    events = read_history(replays.history) if ordering == "Unordered" else replays.events()
    handled = Counter(event.at for event in events if type(event) is End)
    assert handled == _range(topic, (0,), 50, RECORDS) + _range(topic, range(1, PARTITIONS), 0, RECORDS)
    if ordering == "Partition":
        offsets: dict[int, list[int]] = defaultdict(list)
        for event in events:
            if type(event) is Start:
                offsets[event.at.partition].append(event.at.offset)
        assert all(seen == sorted(seen) for seen in offsets.values())
    assert kafka.group(group).state == "DEAD", "the manifest's group came into being"


@pytest.mark.proves(31)
def test_the_manifests_concurrency_applies_unless_told_otherwise(
    kafka: KafkaBroker, topic: str, group: str, tmp_path: Path
) -> None:
    """From min upwards while calls take no longer, to max at most; with --concurrency exactly so many."""
    _fill(kafka, topic)
    spec = spec_for(
        kafka.bootstrap, topic, group, "on_record", ordering="Unordered", concurrency={"min": 10, "max": 14}
    )
    replays = _Replays(spec, tmp_path, work_ms=30)
    replays.run("--from", "earliest", "--to", "latest")
    assert _most_at_once(read_history(replays.history)) == 14
    fixed = _Replays(spec, tmp_path / "fixed", work_ms=30)
    fixed.run("--from", "earliest", "--to", "offset:100", "--concurrency", "3")
    assert _most_at_once(read_history(fixed.history)) == 3


def _most_at_once(events: Iterable[Event]) -> int:
    running = most = 0
    for event in events:
        running += type(event) is Start
        running -= type(event) is End
        most = max(most, running)
    return most


@pytest.mark.proves(31)
def test_results_go_where_the_manifest_says_unless_told_otherwise(
    kafka: KafkaBroker, topic: str, group: str, tmp_path: Path
) -> None:
    """Each record's result once, acknowledged; with --no-results none, and the topic need not exist."""
    _fill(kafka, topic)
    results = f"{topic}-results"
    spec = spec_for(kafka.bootstrap, topic, group, "with_result", results=results, concurrency={"fixed": 50})
    replays = _Replays(spec, tmp_path, work_ms=0)
    said = replays.run("--from", "earliest", "--to", "offset:10", "--no-results")
    assert ": 0 failures, 0 dead letters, 0 results" in said
    assert replays.handled() == _range(topic, range(PARTITIONS), 0, 10)
    kafka.create_topic(results, 1)
    said = replays.run("--from", "offset:10", "--to", "offset:60")
    assert "200 records in" in said
    assert "200 results" in said
    received = read_topic(kafka.bootstrap, results, kafka.end_offsets(results))
    assert Counter(one.headers["offset"] for one in received) == Counter({f"{n}".encode(): 4 for n in range(10, 60)})


@pytest.mark.proves(31)
def test_failures_follow_the_retry_policy(kafka: KafkaBroker, topic: str, group: str, tmp_path: Path) -> None:
    """Poison is tried as often as the manifest says and becomes a dead letter, its key in order; the summary counts it."""
    dead = f"{topic}-dead"
    kafka.create_topic(dead, 1)
    fill(kafka.bootstrap, topic, (Placed(0, f"{n % 3}", b"poison" if n % 20 == 7 else b"x") for n in range(100)))
    retry = {"maxAttempts": 3, "initialBackoff": "10ms"}
    spec = spec_for(kafka.bootstrap, topic, group, "fail_on_poison", retry=retry, deadLetter={"topic": dead})
    replays = _Replays(spec, tmp_path)
    assert "100 records in" in (said := replays.run("--from", "earliest", "--to", "latest"))
    assert ": 15 failures, 5 dead letters, 0 results" in said
    letters = read_topic(kafka.bootstrap, dead, kafka.end_offsets(dead))
    assert sorted(int(one.headers["parallel-consumer-dead-letter-offset"] or b"") for one in letters) == [
        7,
        27,
        47,
        67,
        87,
    ]
    assert {one.headers["parallel-consumer-dead-letter-member"] for one in letters} == {b"orders-replay"}
    replays.events()


@pytest.mark.proves(31)
def test_a_range_that_ends_in_marks_of_transactions_ends(
    kafka: KafkaBroker, topic: str, group: str, tmp_path: Path
) -> None:
    """The last offsets of the log are no records: the replay does not wait for them."""
    for part in range(3):
        fill(kafka.bootstrap, topic, (Placed(0, f"{n}") for n in range(10)), transactional_id=f"{topic}-{part}")
    # A coordinator acknowledges a commit before it has written its mark.
    wait_until(lambda: kafka.end_offsets(topic)[0] == 33, "the marks are written", 30)
    replays = _Replays(spec_for(kafka.bootstrap, topic, group, "on_record"), tmp_path)
    assert "30 records in" in replays.run("--from", "earliest", "--to", "latest")
    assert "1 records in" in replays.run("--from", "offset:9", "--to", "offset:11")


@pytest.mark.proves(31)
def test_a_replay_that_is_stopped_finishes_what_it_began(
    kafka: KafkaBroker, topic: str, group: str, tmp_path: Path
) -> None:
    """Ctrl-C: no call is cut off, the exit status says that the range is not complete."""
    _fill(kafka, topic)
    replays = _Replays(spec_for(kafka.bootstrap, topic, group, "on_record"), tmp_path, work_ms=200)
    process = TiedProcess(
        [*COMMAND, *replays.command("--from", "earliest", "--to", "latest", "--concurrency", "8")],
        tmp_path / "replay.log",
        env={**os.environ, **replays.env},
    )
    wait_until(lambda: len(read_so_far(replays.history)) > 20, "some are handled", 30, state=process.tail)
    process.send(signal.SIGINT)
    assert process.wait(30) == 75
    said = process.text()
    assert "error: stopped before every record of the range was complete" in said
    events = read_history(replays.history)
    assert len({e.at for e in events if type(e) is Start} - {e.at for e in events if type(e) is End}) == 0
    assert f"{len(replays.handled())} records in" in said


@pytest.mark.proves(31)
def test_a_range_that_makes_no_sense_is_refused(kafka: KafkaBroker, topic: str, group: str, tmp_path: Path) -> None:
    """An end before the start, and a partition that is not there, by name."""
    _fill(kafka, topic)
    replays = _Replays(spec_for(kafka.bootstrap, topic, group, "on_record"), tmp_path)
    for options, says in (
        (("--from", "offset:9", "--to", "offset:3"), "error: --to: lies before --from"),
        (("--from", "latest", "--to", "earliest"), "error: --to: lies before --from"),
        (("--from", "earliest", "--to", "latest", "--partition", "9"), "error: --partition: "),
    ):
        ran = pconsumer(*replays.command(*options), env=replays.env)
        assert ran.returncode == 78
        assert says in ran.stderr
    shown = json.loads(pconsumer("offsets", "show", "-f", str(replays.path), "--json").stdout)
    assert [row["committed"] for row in shown["partitions"]] == [None] * PARTITIONS
