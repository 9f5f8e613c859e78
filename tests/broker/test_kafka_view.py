"""The tier's own eyes: what the fixture reads from the broker is what happened."""

import signal
import subprocess
import sys
import time
from pathlib import Path

from confluent_kafka import Consumer, Producer

from tests.support.kafka import KafkaBroker
from tests.support.kafka_view import Committed, KafkaView
from tests.support.processes import REPOSITORY
from tests.support.waiting import wait_until


def _consumer(kafka: KafkaBroker, topic: str, group: str, instance: str) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap,
            "group.id": group,
            "group.instance.id": instance,
            "client.id": instance,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "partition.assignment.strategy": "cooperative-sticky",
        }
    )
    consumer.subscribe([topic])
    return consumer


def _until_assigned(*consumers: Consumer) -> None:
    def assigned() -> bool:
        for consumer in consumers:
            consumer.poll(0.05)
        return all(consumer.assignment() for consumer in consumers)

    wait_until(assigned, "every consumer has partitions", 30)


def test_a_group_is_described_with_generation_and_static_members(kafka: KafkaBroker, topic: str, group: str) -> None:
    """State, generation, instance ids and assignment are the broker's; a static restart keeps the generation."""
    assert kafka.group(group).state == "DEAD"
    first = _consumer(kafka, topic, group, "one-0")
    _until_assigned(first)
    before = kafka.group(group)
    assert (before.state, before.generation) == ("STABLE", 1)
    assert [member.instance_id for member in before.members] == ["one-0"]
    assert before.members[0].assignment == tuple((topic, partition) for partition in range(4))
    first.close()
    again = _consumer(kafka, topic, group, "one-0")
    _until_assigned(again)
    assert kafka.group(group).generation == before.generation
    second = _consumer(kafka, topic, group, "one-1")
    _until_assigned(again, second)
    after = kafka.group(group)
    assert after.generation is not None
    assert after.generation > 1
    assert [member.instance_id for member in after.members] == ["one-0", "one-1"]
    second.close()
    again.close()


def test_commits_carry_their_metadata(kafka: KafkaBroker, topic: str, group: str) -> None:
    """Committed offsets and metadata are read back as written; partitions without a commit are left out."""
    kafka.commit(group, topic, {2: Committed(7, "bAALLgIA")})
    assert kafka.committed(group, topic) == {2: Committed(7, "bAALLgIA")}


def test_end_offsets_count_what_was_produced(kafka: KafkaBroker, topic: str) -> None:
    """The ends are the high watermarks."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for number in range(100):
        producer.produce(topic, str(number).encode(), partition=number % 2)
    assert producer.flush(30) == 0
    assert kafka.end_offsets(topic) == {0: 50, 1: 50, 2: 0, 3: 0}


def test_a_prefixed_broker_is_asked_through_its_prefix(kafka: KafkaBroker, topic: str, group: str) -> None:
    """Answers that come as JSON through a command equal those of a client in this process."""
    kafka.commit(group, topic, {1: Committed(3, "map")})
    through = KafkaBroker(prefix=["env"])
    through.bootstrap = kafka.bootstrap
    assert through.committed(group, topic) == kafka.committed(group, topic)
    assert through.group(group) == kafka.group(group)
    assert through.end_offsets(topic) == kafka.end_offsets(topic)


def test_the_broker_dies_with_the_tests(tmp_path: Path) -> None:
    """A test process killed with SIGKILL leaves no JVM behind."""
    script = (
        "import pathlib, sys, time\n"
        "from tests.support.processes import TiedProcess\n"
        "child = TiedProcess([sys.executable, '-c', 'import time; time.sleep(600)'], pathlib.Path(sys.argv[1]))\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    owner = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "log")], stdout=subprocess.PIPE, cwd=REPOSITORY, text=True
    )
    stdout = owner.stdout
    assert stdout is not None
    with stdout:
        child = int(stdout.readline())
    owner.send_signal(signal.SIGKILL)
    owner.wait(10)

    def gone() -> bool:
        try:
            return Path(f"/proc/{child}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
        except FileNotFoundError:
            return True

    wait_until(gone, "the tied child is dead", 10)


def test_a_view_answers_within_a_second(kafka: KafkaBroker, topic: str, group: str) -> None:
    """Tests poll the group while they wait, so asking must be cheap."""
    kafka.commit(group, topic, {0: Committed(1, "")})
    with KafkaView(kafka.bootstrap) as view:
        view.group(group)
        started = time.monotonic()
        for _ in range(5):
            view.group(group)
        assert time.monotonic() - started < 5
