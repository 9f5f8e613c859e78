"""A member that returns within the session gets its partitions back, and nobody else notices."""

import os
import signal
from pathlib import Path

import pytest
from confluent_kafka import Producer

from parallel_consumer_runtime.settings import MemberState, MemberStatus
from tests.support.checkers import KeyOrder, NothingLost, judge, report
from tests.support.excuses import OnlyExcusedRepeats
from tests.support.history import Fault, read_history
from tests.support.kafka import KafkaBroker
from tests.support.leave_group import leave_group
from tests.support.members import Members, spec_for
from tests.support.traffic import Traffic
from tests.support.waiting import wait_until


@pytest.mark.proves(26)
def test_restarts_keep_generation_instance_ids_and_assignment(
    kafka: KafkaBroker, topic: str, group: str, tmp_path: Path
) -> None:
    """After a kill and after a term the same partitions are consumed on, in the same generation, read from the broker."""
    spec = spec_for(kafka.bootstrap, topic, group, "on_record").model_copy(update={"replicas": 2})
    with Members("still", spec, tmp_path) as members:
        for ordinal in (0, 1):
            members.start(ordinal)
        for ordinal in (0, 1):
            members.wait_status(ordinal, lambda status: len(status.partitions) == 2, "owns its half")
        before = kafka.group(group)
        other = members.status(1)
        assert other is not None
        assert [member.instance_id for member in before.members] == ["still-0", "still-1"]

        traffic = Traffic(kafka.bootstrap, topic)
        for end in (members.kill, members.terminate):
            end(0)
            members.start(0)
            traffic.send((f"key-{number}", b"x") for number in range(400))
            members.wait_status(0, lambda status: status.handled > 0 and status.lag == 0, "consumes again")
            after = kafka.group(group)
            assert after.generation == before.generation
            assert [(m.instance_id, m.assignment) for m in after.members] == [
                (m.instance_id, m.assignment) for m in before.members
            ]
        unmoved = members.wait_status(1, lambda status: status.lag == 0, "is done")
        assert unmoved.epoch == other.epoch


@pytest.mark.proves(27)
def test_a_fenced_member_ends_instead_of_looking_ready(
    kafka: KafkaBroker, topic: str, group: str, tmp_path: Path
) -> None:
    """A process whose instance id was taken by another one ends with a status and a reason."""
    spec = spec_for(kafka.bootstrap, topic, group, "on_record")
    (tmp_path / "twin").mkdir()
    with Members("only", spec, tmp_path) as members, Members("only", spec, tmp_path / "twin") as twins:
        members.start(0)
        members.wait_status(0, lambda status: len(status.partitions) == 4, "owns everything")
        twins.start(0)
        old = members.process(0)
        assert old.wait(30) not in {0, None}
        assert "instance id 'only-0'" in old.text()
        assert "Traceback" not in old.text()
        twins.wait_status(0, lambda status: len(status.partitions) == 4, "took over")


def test_a_frozen_member_leaves_no_mark_after_its_session(
    kafka: KafkaBroker, topic: str, group: str, tmp_path: Path
) -> None:
    """SIGSTOP beyond the session, then SIGCONT: its partitions moved meanwhile, and it joins again or ends."""
    spec = spec_for(kafka.bootstrap, topic, group, "on_record").model_copy(update={"replicas": 2})
    short = spec.kafka.model_copy(update={"session_timeout": 6.0})
    spec = spec.model_copy(update={"kafka": short})
    with Members("cold", spec, tmp_path) as members:
        for ordinal in (0, 1):
            members.start(ordinal)
        for ordinal in (0, 1):
            members.wait_status(ordinal, lambda status: len(status.partitions) == 2, "owns its half")
        members.freeze(0)
        members.wait_status(1, lambda status: len(status.partitions) == 4, "took everything", 40)
        Traffic(kafka.bootstrap, topic, members.history).send((f"key-{number}", b"x") for number in range(1000))
        members.wait_status(1, lambda status: status.lag == 0, "handled everything")
        committed = kafka.committed(group, topic)
        members.thaw(0)
        frozen = members.process(0)

        def settled() -> bool:
            if frozen.exit_code is not None:
                return True
            status = members.status(0)
            return status is not None and len(status.partitions) == 2

        wait_until(settled, "the thawed member joined again or ended", 30)
        assert {p: one.offset for p, one in kafka.committed(group, topic).items()} == {
            p: one.offset for p, one in committed.items()
        }
        if frozen.exit_code is None:
            os.kill(frozen.pid, signal.SIGTERM)
            assert frozen.wait(30) == 0


@pytest.mark.timeout(180)
@pytest.mark.proves(26)
def test_a_member_that_ends_while_it_waits_for_the_others_repeats_nothing(
    kafka: KafkaBroker, topic: str, group: str, tmp_path: Path
) -> None:
    """Its last commit waits behind its own JoinGroup, for a generation that is over by then: it is made again, and taken."""
    spec = spec_for(kafka.bootstrap, topic, group, "on_record", concurrency={"fixed": 10}, drainTimeout="5s")
    with Members("leave", spec.model_copy(update={"replicas": 3}), tmp_path, work_ms=5) as members:
        traffic = Traffic(kafka.bootstrap, topic, members.history)
        traffic.send((f"key-{number % 100}", b"x") for number in range(40_000))
        for ordinal in (0, 1):
            members.start(ordinal)
        for ordinal in (0, 1):
            members.wait_status(ordinal, lambda status: len(status.partitions) == 2, "owns its half")
        members.freeze(1)  # the group waits for it
        members.start(2)
        standing = _Standing()
        members.wait_status(0, standing.seen, "handles on, and its commits wait", 60)
        ending = members.process(0)
        members.history.fault(members.life(0), Fault.TERM)
        ending.send(signal.SIGTERM)
        members.wait_status(0, lambda status: status.state == MemberState.CLOSING, "commits for the last time")
        members.thaw(1)
        assert members.reap(0) == 0, ending.tail()
        assert "the last commit failed" not in ending.text()
        leave_group(kafka.bootstrap, group, "leave-0")
        wait_until(
            lambda: kafka.committed_total(group, topic) == 40_000,
            "the others do the rest",
            90,
            state=lambda: str([members.status(ordinal) for ordinal in (1, 2)]),
        )
        for ordinal in (1, 2):
            assert members.terminate(ordinal) == 0
    events = read_history(members.history_path)
    assert not (found := judge(events, [NothingLost(), KeyOrder(), OnlyExcusedRepeats([], commit_s=0)])), report(found)


@pytest.mark.timeout(180)
@pytest.mark.proves(7, 26)
def test_a_partition_that_was_given_up_paused_is_read_when_it_comes_back(
    kafka: KafkaBroker, topic: str, group: str, tmp_path: Path
) -> None:
    """The client keeps the pause of an assignment that is over: nobody would resume the partition."""
    spec = spec_for(
        kafka.bootstrap, topic, group, "hold_in_first_life", drainTimeout="0s", buffer={"recordsPerPartition": 20}
    )
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    with Members("back", spec.model_copy(update={"replicas": 2}), tmp_path, work_ms=1) as members:
        for partition in range(4):
            key = f"held-{partition}"
            producer.produce(topic, b"hold", key, partition)
            for _ in range(100):
                producer.produce(topic, b"x", key, partition)
        assert producer.flush(30) == 0
        members.start(0)
        full = members.wait_status(
            0, lambda s: len(s.partitions) == 4 and all(p.paused for p in s.partitions), "is full"
        )
        assert full.handled == 0
        members.start(1)
        wait_until(lambda: kafka.committed_total(group, topic) == 202, "the other one does what it took", 60)
        assert members.terminate(1) == 0
        leave_group(kafka.bootstrap, group, "back-1")
        members.wait_status(0, lambda status: len(status.partitions) == 4, "has them back", 60)
        for partition in range(4):
            for number in range(10):
                producer.produce(topic, b"x", f"free-{number}", partition)
        assert producer.flush(30) == 0
        members.wait_status(0, lambda status: status.handled == 20, "reads what came back", 60)
        members.kill(0)


class _Standing:
    """Whether a member handles records, and none of its commits is acknowledged."""

    def __init__(self) -> None:
        self._committed = -1
        self._handled = 0

    def seen(self, status: MemberStatus) -> bool:
        committed = sum(partition.committed or 0 for partition in status.partitions)
        if committed != self._committed:
            self._committed, self._handled = committed, status.handled
        return status.handled - self._handled >= 2000
