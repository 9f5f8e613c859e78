"""A group of Confluent's Parallel Consumer is taken over while it runs, member by member, and handed back.

The maps are judged by their bytes in the coordinator's log, and the calls by one history that both libraries write.
"""

import itertools
import json
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import pytest

from tests.support.checkers import KeyOrder, NothingInvented, NoZombies, OneAtATime, judge, report
from tests.support.commit_log import Commit, CommitLog, Tenure, protocols_of, tenures_of
from tests.support.commit_watch import CommitWatch
from tests.support.group_run import steady_spec
from tests.support.handovers import complete_above, conduct, merged, overlaps, repeats
from tests.support.history import End, Event, Life, Outcome, Produced, Start, read_history
from tests.support.java_consumer import JavaConsumer
from tests.support.kafka import KafkaBroker
from tests.support.kafka_groups import CommitRecord, GroupRecord
from tests.support.manifests import pconsumer, write_manifest
from tests.support.members import Members
from tests.support.traffic import Feeder, Traffic
from tests.support.waiting import wait_until

pytestmark = pytest.mark.acceptance

PARTITIONS = 8
MEMBERS = 3
KEYS = 100
SEED = 1
BACKLOG = 1_000
RATE = 600
"""Records produced in a second; three members can do twice as many, to catch up after each switch."""
BURST = 1_000
"""Produced at once before a member is stopped: keys then wait for themselves, and the maps have gaps."""
CHUNK = 100
CONCURRENCY = 10
WORK_MS = 20
SESSION = "6s"
"""A member of ours that ended keeps its place until its session is over: the handing back waits for that three times."""
HEARTBEAT_MS = "1000"
"""On both sides: each of a switch's rebalances begins for a member with its next heartbeat."""
RANGE_ASSIGNOR = "org.apache.kafka.clients.consumer.RangeAssignor"
SWITCH_TIMEOUT_S = 40.0
SETTLE_TIMEOUT_S = 60.0
REFUSED = re.compile(r"\[(\d+)\]: the metadata committed at offset (\d+) cannot be read")
"""What a member says of a map that it does not believe: one of Java's that lies under too high an offset may end beyond the log."""
OURS = "ours"
JAVA = "java"


class Migration:
    """One group under load, of members of either library."""

    def __init__(self, kafka: KafkaBroker, topic: str, group: str, folder: Path) -> None:
        self.kafka, self.topic, self.group, self.folder = kafka, topic, group, folder
        client = {"heartbeat.interval.ms": HEARTBEAT_MS}
        spec = steady_spec(kafka.bootstrap, topic, group, sessionTimeout=SESSION, consumerConfig=client)
        self.manifest = write_manifest(folder, "consumer", spec)
        self.log = CommitLog(kafka, group)
        self.members = Members(OURS, spec, folder, work_ms=WORK_MS)
        self.java: dict[int, JavaConsumer] = {}
        self.traffic = Traffic(kafka.bootstrap, topic, self.members.history)
        self.watch = CommitWatch(kafka.bootstrap, group, topic, self.members.history)
        chance = random.Random(SEED)
        records = ((f"key-{chance.randrange(KEYS)}", b"x" * 100) for _ in itertools.count())
        self.bursts = 0
        began = time.monotonic()
        self.feeder = Feeder(self.traffic, records, BACKLOG, lambda: self.due(began), chunk=CHUNK)

    def due(self, began: float) -> float:
        """Return how many records the group should be past, had it kept pace."""
        return (time.monotonic() - began) * RATE + self.bursts * BURST

    def burst(self) -> None:
        """Return when there is much to do for everybody."""
        expected = self.traffic.produced + BURST
        self.bursts += 1
        wait_until(lambda: self.traffic.produced >= expected, "a burst is produced", SWITCH_TIMEOUT_S)

    def start_java(self, number: int) -> None:
        """Start a member of Java's."""
        self.java[number] = JavaConsumer(
            self.kafka.bootstrap,
            self.group,
            self.topic,
            self.folder,
            concurrency=CONCURRENCY,
            work_min_ms=WORK_MS // 2,
            work_max_ms=WORK_MS + WORK_MS // 2,
            life=Life(f"{JAVA}-{number}", "1"),
            history=self.members.history_path,
            commit_mode="PERIODIC_CONSUMER_ASYNCHRONOUS",
            config={"heartbeat.interval.ms": HEARTBEAT_MS},
        )

    def stop_java(self, number: int) -> None:
        """Stop it cleanly."""
        java = self.java.pop(number)
        java.stop(SWITCH_TIMEOUT_S)
        self.members.history.ended(java.life)

    def shared_by(self, names: Iterable[str]) -> float:
        """Return the seconds until these members share the partitions and every partition's commits move on."""
        expected = set(names)
        began = time.monotonic()

        def shared() -> bool:
            view = self.kafka.group(self.group)
            owners = {one.instance_id or one.client_id: len(one.assignment) for one in view.members}
            return view.state == "STABLE" and owners.keys() == expected and all(owners.values())

        wait_until(shared, f"{sorted(expected)} share the partitions", SWITCH_TIMEOUT_S, state=self.state)
        before = dict(self.watch.committed)

        def moved() -> bool:
            now = self.watch.committed
            return len(now) == PARTITIONS and all(now[p] > before.get(p, 0) for p in now)

        wait_until(moved, "every partition moves on", SWITCH_TIMEOUT_S, state=self.state)
        return time.monotonic() - began

    def state(self) -> str:
        """Return what to print when something does not come about."""
        tails = [f"--- {java.life.member}:\n{java.process.tail()}" for java in self.java.values()]
        return "\n".join([f"{self.kafka.group(self.group)}", f"{self.watch.committed}", *self.members.tails(), *tails])

    def names(self) -> list[str]:
        """Return the names of the members that run."""
        ours = [f"{OURS}-{ordinal}" for ordinal in self.members.ordinals()]
        return ours + [java.life.member for java in self.java.values()]

    def look(self) -> list[str]:
        """Run what the operations page tells one to run after each switch; return what it has to remark."""
        ran = pconsumer("offsets", "show", "-f", str(self.manifest), "--json")
        assert ran.returncode == 0, ran.stderr
        shown = json.loads(ran.stdout)
        assert len(shown["members"]) == MEMBERS
        assert all(one["committed"] is not None for one in shown["partitions"])
        return [one["note"] for one in shown["partitions"] if one["note"]]

    def run(self) -> list[float]:
        """Take the group over and hand it back; return the seconds that each switch took."""
        took: list[float] = []
        with self.members, self.watch:
            for number in range(MEMBERS):
                self.start_java(number)
            with self.feeder:
                self.shared_by(self.names())
                self.look()
                for number in range(MEMBERS):
                    self.burst()
                    self.stop_java(number)
                    self.members.start(number)
                    took.append(self.shared_by(self.names()))
                assert self.look() == []
                for number in range(MEMBERS):
                    self.burst()
                    assert self.members.terminate(number) == 0
                    self.start_java(MEMBERS + number)
                    took.append(self.shared_by(self.names()))
            wait_until(
                lambda: self.watch.total >= self.traffic.produced,
                f"all of {self.traffic.produced} records are committed",
                SETTLE_TIMEOUT_S,
                state=self.state,
            )
            for number in list(self.java):
                self.stop_java(number)
        return took

    def tenures(self, records: Iterable[CommitRecord | GroupRecord]) -> dict[int, list[Tenure]]:
        """Return who owned what and committed what; of a map that a member of ours refused, and said so, nothing is known."""
        refused = {
            (log.name.partition(".")[0], int(partition), int(offset))
            for log in self.folder.glob(f"{OURS}-*.log")
            for partition, offset in REFUSED.findall(log.read_text())
        }
        return {
            partition: [
                one._replace(before=Commit(one.before.offset, ""))
                if one.before is not None and (one.owner, partition, one.before.offset) in refused
                else one
                for one in all_of
            ]
            for partition, all_of in tenures_of(records, self.topic).items()
        }


def _side(name: str) -> str:
    return name.partition("-")[0]


def _found_above_gaps(tenures: Mapping[int, Sequence[Tenure]]) -> Counter[str]:
    """Return how many completed records above a gap each side was told of by the other's maps."""
    found: Counter[str] = Counter()
    for all_of in tenures.values():
        for before, after in itertools.pairwise(all_of):
            if after.before is not None and _side(before.owner) != _side(after.owner):
                found[_side(after.owner)] += complete_above(after.before)
    return found


def _ours(events: Iterable[Event]) -> list[Event]:
    """Return the history as if only our members had called handlers."""
    return [event for event in events if not isinstance(event, Start | End) or _side(event.life.member) == OURS]


def _by_side(pairs: Iterable[tuple[str, str]]) -> str:
    counts = Counter(f"{_side(before)} then {_side(after)}" for before, after in pairs)
    return ", ".join(f"{count} {pair}" for pair, count in sorted(counts.items())) or "none"


@pytest.mark.timeout(300)
@pytest.mark.proves(7, 25)
def test_a_java_group_is_taken_over_live_and_handed_back(
    kafka: KafkaBroker, unique: str, group: str, tmp_path: Path, figure: Callable[[object], None]
) -> None:
    """Ours lose, repeat and overlap nothing: their commits, their calls and the maps that they found agree to the record."""
    kafka.create_topic(unique, PARTITIONS)
    began = time.monotonic()
    migration = Migration(kafka, unique, group, tmp_path)
    took = migration.run()
    events = read_history(migration.members.history_path)
    records = migration.log.read()
    tenures = migration.tenures(records)
    found = conduct(tenures, events)
    above = _found_above_gaps(tenures)
    again = [(one.before, one.again) for one in repeats(events)]
    beside = overlaps(events)
    lost = {one.at for one in events if isinstance(one, Produced)} - {
        one.at for one in events if isinstance(one, End) and one.outcome is Outcome.DONE
    }
    figure(
        f"{migration.traffic.produced} records in {time.monotonic() - began:.0f} s, {2 * MEMBERS} switches, "
        f"{' '.join(f'{seconds:.1f}' for seconds in took)} s until every partition moved on"
    )
    figure(
        f"lost: {len(lost)}; completed above a gap, as ours were told by Java {above[OURS]}, as Java by ours {above[JAVA]}"
    )
    figure(f"handled again: {_by_side(again)}; begun beside another of its key: {_by_side(beside.elements())}")
    for side in (OURS, JAVA):
        figure(f"commits of {side}: {merged(one for name, one in found.items() if _side(name) == side)}")

    assert {name for name in found if _side(name) == OURS} == {f"{OURS}-{number}" for number in range(MEMBERS)}
    assert protocols_of(records) == ["range", "cooperative-sticky", "range"]
    for name, one in found.items():
        assert _side(name) == JAVA or one.in_order, f"{name}: {one}"
    assert above[OURS] > 0
    assert above[JAVA] > 0
    assert (OURS, OURS) not in {(_side(before), _side(after)) for before, after in again}
    # Ours are done with what they give up; what Java still runs when it loses a partition, it runs to its end.
    assert not [pair for pair in beside if _side(pair[0]) == OURS]
    claimed = {place for name, one in found.items() if _side(name) == JAVA for place in one.unearned}
    assert {(at.partition, at.offset) for at in lost} <= claimed, "lost, and not by what Java committed"
    wrong = judge(events, [NothingInvented()]) + judge(_ours(events), [KeyOrder(), OneAtATime(), NoZombies()])
    assert not wrong, report(wrong)


@pytest.mark.timeout(180)
@pytest.mark.proves(25)
def test_a_java_group_that_knows_only_range_is_joined_with_range(
    kafka: KafkaBroker, topic: str, group: str, tmp_path: Path
) -> None:
    """With another assignor a member is refused, says so and is not ready; the group goes on without it."""
    Traffic(kafka.bootstrap, topic).send((f"key-{n % KEYS}", b"x") for n in range(BACKLOG))
    java = JavaConsumer(
        kafka.bootstrap, group, topic, tmp_path, config={"partition.assignment.strategy": RANGE_ASSIGNOR}
    )

    def owners() -> set[str]:
        return {one.instance_id or one.client_id for one in kafka.group(group).members if one.assignment}

    with java.process, Members(OURS, steady_spec(kafka.bootstrap, topic, group), tmp_path) as stranger:
        wait_until(lambda: owners() == {JAVA}, "Java owns partitions", SWITCH_TIMEOUT_S, state=java.process.tail)
        stranger.start(0)
        wait_until(lambda: "let spec.kafka.assignor" in stranger.process(0).tail(), "ours is refused", SWITCH_TIMEOUT_S)
        assert stranger.get(0, "/readyz") is None
        assert owners() == {JAVA}
        assert stranger.terminate(0) == 0
        spec = steady_spec(kafka.bootstrap, topic, group, assignor="Range")
        with Members(OURS, spec, tmp_path) as members:
            members.start(0)
            members.wait_status(0, lambda status: bool(status.partitions), "owns partitions", SWITCH_TIMEOUT_S)
            assert owners() == {JAVA, f"{OURS}-0"}
            assert members.terminate(0) == 0
        java.stop(SWITCH_TIMEOUT_S)
