"""GET /offsets of a member: where the logs begin and end, as the brokers say after the question came."""

import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, cast

import pytest
from confluent_kafka import Producer as KafkaProducer
from confluent_kafka.admin import AdminClient

from parallel_consumer_runtime.kafka.inquiry import TIMEOUT_S, Inquiry
from parallel_consumer_runtime.kafka.inquiry_lookup import OffsetsLookUp
from parallel_consumer_runtime.settings import (
    OffsetsAnswer,
    ParallelConsumerSpec,
    TopicOffsets,
    TopicRole,
    render_static,
)
from tests.support.corpus import manifest
from tests.support.endangered import Endangered, endangered_broker
from tests.support.filling import Placed, add_partitions, delete_below, fill, replace_topic
from tests.support.kafka import KafkaBroker
from tests.support.members import Members, spec_for
from tests.support.scale import scaled
from tests.support.traffic import Traffic
from tests.support.waiting import wait_until

KILLS = scaled(5, 20)
ASKERS = 3


def inquiry(bootstrap: str, *topics: str, waiting_max: int = 16, **changes: Any) -> Inquiry:
    """Return an inquiry as a member of a manifest with these topics and changes has it."""
    fields: dict[str, Any] = {
        "spec__kafka__bootstrapServers": bootstrap,
        "spec__kafka__topics": list(topics),
        **changes,
    }
    spec = ParallelConsumerSpec.model_validate(manifest("orders", **fields)["spec"])
    return Inquiry(lambda: OffsetsLookUp(render_static("orders", spec), "orders-0"), waiting_max)


@contextmanager
def asked(one: Inquiry) -> Generator[Inquiry]:
    """Stop it at the end of the block."""
    try:
        yield one
    finally:
        one.stop()


def ends(topic: TopicOffsets) -> list[int]:
    """Return the ends of a topic's partitions."""
    return [partition.end for partition in topic.partitions]


def starts(topic: TopicOffsets) -> list[int]:
    """Return the starts of a topic's partitions."""
    return [partition.start for partition in topic.partitions]


def delete_topic(bootstrap: str, topic: str) -> None:
    """Delete a topic; done when the controller has done it."""
    admin = cast("Any", AdminClient({"bootstrap.servers": bootstrap, "log_level": 0}))
    admin.delete_topics([topic])[topic].result(30)


class Answered(NamedTuple):
    """What came back over HTTP."""

    status: int
    body: str
    took_s: float

    @property
    def offsets(self) -> OffsetsAnswer:
        """The body as what it should be."""
        return OffsetsAnswer.model_validate(json.loads(self.body))


def get_offsets(port: int) -> Answered:
    """Ask a member; a connection that it refuses is an OSError."""
    began_s = time.monotonic()
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/offsets", timeout=4 * TIMEOUT_S) as answer:
            return Answered(answer.status, answer.read().decode(), time.monotonic() - began_s)
    except urllib.error.HTTPError as error:
        with error:
            return Answered(error.code, error.read().decode(), time.monotonic() - began_s)


def test_a_member_tells_its_topics_with_their_roles(  # noqa: PLR0917 - fixtures, by name
    kafka: KafkaBroker, topic: str, group: str, unique: str, tmp_path: Path, figure: Callable[[object], None]
) -> None:
    """Input, results, dead letters, with Kafka's own words for the topics' ids; how long that takes is printed."""
    results, dead = f"{unique}-results", f"{unique}-dead"
    kafka.create_topic(results, 2)
    spec = spec_for(
        kafka.bootstrap,
        topic,
        group,
        "with_result",
        results=results,
        retry={"maxAttempts": 2},
        deadLetter={"topic": dead},
    )
    kafka.create_topic(dead, 1)
    Traffic(kafka.bootstrap, topic).send((f"key-{n % 50}", b"x") for n in range(400))
    with Members("asked", spec, tmp_path, work_ms=1) as members:
        port = members.start(0).port
        members.wait_status(0, lambda status: status.handled == 400 and status.lag == 0, "handled everything")
        before = time.time()
        first = get_offsets(port)
        assert first.status == 200, first.body
        answer = first.offsets
        assert before <= answer.at <= time.time()
        assert [(one.name, one.role) for one in answer.topics] == [
            (topic, TopicRole.INPUT),
            (results, TopicRole.RESULTS),
            (dead, TopicRole.DEAD_LETTERS),
        ]
        for one in answer.topics:
            assert dict(enumerate(ends(one))) == kafka.end_offsets(one.name)
            assert starts(one) == [0] * len(one.partitions)
            assert one.id is not None
            assert len(one.id) == 22
        took_ms = [get_offsets(port).took_s * 1000 for _ in range(30)]
        figure(f"the first answer after {first.took_s * 1000:.0f} ms, then {median(took_ms):.1f} ms (median of 30)")
        assert members.terminate(0) == 0


def test_a_topic_that_is_made_again_has_another_id(kafka: KafkaBroker, topic: str) -> None:
    """As soon as the broker itself knows of it: its own id, its own partitions, its own offsets."""
    fill(kafka.bootstrap, topic, (Placed(n % 4, f"{n}") for n in range(40)))
    with asked(inquiry(kafka.bootstrap, topic)) as one:
        (old,) = one.ask().topics
        assert ends(old) == [10] * 4
        replace_topic(kafka.bootstrap, topic, 2)
        wait_until(lambda: one.ask().topics[0].id not in {None, old.id}, "the broker knows the new topic", 10)
        (new,) = one.ask().topics
        assert (starts(new), ends(new)) == ([0, 0], [0, 0])


def test_a_topic_that_does_not_exist_has_no_id_and_no_partitions(kafka: KafkaBroker, topic: str, unique: str) -> None:
    """And it is not made by asking for it; once there, it is told."""
    missing = f"{unique}-missing"
    with asked(inquiry(kafka.bootstrap, topic, spec__results={"topic": missing})) as one:
        present, absent = one.ask().topics
        assert len(present.partitions) == 4
        assert (absent.name, absent.role, absent.id, absent.partitions) == (missing, TopicRole.RESULTS, None, [])
        assert missing not in kafka.topics()
        kafka.create_topic(missing, 3)
        wait_until(lambda: len(one.ask().topics[1].partitions) == 3, "it is told", 10)


def test_a_topic_that_was_deleted_is_told_as_gone(kafka: KafkaBroker, topic: str) -> None:
    """To one who knew it, too."""
    with asked(inquiry(kafka.bootstrap, topic)) as one:
        assert one.ask().topics[0].id is not None
        delete_topic(kafka.bootstrap, topic)
        wait_until(lambda: one.ask().topics[0].id is None, "the broker knows that it is gone", 10)
        assert one.ask().topics[0].partitions == []


def test_partitions_that_are_added_are_told(kafka: KafkaBroker, topic: str) -> None:
    """Each from its first offset on."""
    with asked(inquiry(kafka.bootstrap, topic)) as one:
        assert len(one.ask().topics[0].partitions) == 4
        add_partitions(kafka.bootstrap, topic, 6)
        wait_until(lambda: len(one.ask().topics[0].partitions) == 6, "the added ones are told", 10)
        fill(kafka.bootstrap, topic, (Placed(5, "k") for _ in range(3)))
        assert ends(one.ask().topics[0]) == [0, 0, 0, 0, 0, 3]


def test_the_start_is_what_retention_left(kafka: KafkaBroker, topic: str) -> None:
    """Where the log begins, partition by partition."""
    fill(kafka.bootstrap, topic, (Placed(n % 4, f"{n}") for n in range(80)))
    delete_below(kafka.bootstrap, topic, {0: 5, 2: 20})
    with asked(inquiry(kafka.bootstrap, topic)) as one:
        (told,) = one.ask().topics
        assert starts(told) == [5, 0, 20, 0]
        assert ends(told) == [20] * 4


def test_a_pattern_tells_every_topic_that_matches_now(kafka: KafkaBroker, unique: str) -> None:
    """By name, those that appeared since the last question among them, and no other."""
    first, later, stranger = f"{unique}-in-b", f"{unique}-in-a", f"{unique}-out"
    for name in (first, stranger):
        kafka.create_topic(name, 2)
    changes = {"spec__kafka": {"bootstrapServers": kafka.bootstrap, "groupId": "g", "topicPattern": f"^{unique}-in-.*"}}
    spec = ParallelConsumerSpec.model_validate(manifest("orders", **changes)["spec"])
    with asked(Inquiry(lambda: OffsetsLookUp(render_static("orders", spec), "orders-0"), 16)) as one:
        assert [told.name for told in one.ask().topics] == [first]
        kafka.create_topic(later, 1)

        def told() -> list[tuple[str, int]]:
            return [(topic.name, len(topic.partitions)) for topic in one.ask().topics]

        wait_until(lambda: told() == [(later, 1), (first, 2)], "the later one is told", 10)


@pytest.mark.parametrize("mode", ["Transactional", "Async"])
def test_an_open_transaction_ends_the_log_under_exactly_once(kafka: KafkaBroker, topic: str, mode: str) -> None:
    """The last stable offset lies below the high watermark; delivery at least once tells the latter."""
    producer = KafkaProducer({"bootstrap.servers": kafka.bootstrap, "transactional.id": f"{topic}-{mode}"})
    fill(kafka.bootstrap, topic, (Placed(0, "k") for _ in range(7)))
    producer.init_transactions(30)
    producer.begin_transaction()
    for _ in range(5):
        producer.produce(topic, b"x", partition=0)
    assert producer.flush(30) == 0
    with asked(inquiry(kafka.bootstrap, topic, spec__processing={"commitMode": mode})) as one:
        (told,) = one.ask().topics
        assert kafka.end_offsets(topic)[0] == 12
        assert ends(told)[0] == (7 if mode == "Transactional" else 12)
        producer.commit_transaction(30)
        wait_until(lambda: ends(one.ask().topics[0])[0] == 13, "the commit's mark is there", 10)


def test_an_answer_is_never_older_than_its_request(kafka: KafkaBroker, topic: str) -> None:
    """Several ask at once, again and again, while records come: each sees at least what was acknowledged before it asked."""
    acknowledged = 0
    over = threading.Event()
    asked_times = 0

    def ask() -> int:
        times = 0
        while not over.is_set():
            known = acknowledged
            (told,) = one.ask().topics
            assert ends(told)[1] >= known
            times += 1
        return times

    with asked(inquiry(kafka.bootstrap, topic)) as one, ThreadPoolExecutor(6) as pool:
        one.ask()
        asking = [pool.submit(ask) for _ in range(6)]
        try:
            for count in range(1, 31):
                fill(kafka.bootstrap, topic, [Placed(1, "k")])
                acknowledged = count
        finally:
            over.set()
        asked_times = sum(each.result(60) for each in asking)
    assert asked_times > 30


def test_a_broker_that_is_away_is_told_in_time_and_its_return_as_well(
    tmp_path: Path, figure: Callable[[object], None]
) -> None:
    """503 with one sentence, no later than the bound, by a member that goes on; soon after the broker is back it answers."""
    with KafkaBroker() as broker:
        broker.create_topic("in", 2)
        spec = spec_for(broker.bootstrap, "in", "group", "on_record", concurrency={"fixed": 4})
        with Members("away", spec, tmp_path, work_ms=1) as members:
            port = members.start(0).port
            members.wait_status(0, lambda status: len(status.partitions) == 2, "consumes")
            assert get_offsets(port).status == 200
            broker.kill()
            with ThreadPoolExecutor(4) as pool:
                away = list(pool.map(get_offsets, [port] * 4))
            assert {one.status for one in away} == {503}
            assert all(one.body.count("\n") == 1 and "ask again" in one.body for one in away), away
            assert max(one.took_s for one in away) < TIMEOUT_S + 3, away
            assert members.get(0, "/healthz") == "ok\n"
            broker.start()
            began_s = time.monotonic()
            wait_until(lambda: get_offsets(port).status == 200, "it answers again", 30)
            figure(
                f"503 after {max(one.took_s for one in away):.1f} s, answers again {time.monotonic() - began_s:.1f} s after"
            )
            broker.kill()
            with ThreadPoolExecutor(1) as pool:
                left = pool.submit(get_offsets, port)
                assert members.terminate(0) == 0
                left.exception(30)  # whether it was answered is all the same: it kept nobody from ending


@pytest.fixture
def endangered() -> Generator[Endangered]:
    """Return a broker that may be killed."""
    with endangered_broker() as pair:
        yield pair


@pytest.mark.timeout(scaled(900, 1200))
def test_a_member_outlives_brokers_that_die_with_a_question_open(
    endangered: Endangered, tmp_path: Path, figure: Callable[[object], None]
) -> None:
    """Questions are open all the time, and the broker is killed twenty times: the process is the same afterwards."""
    broker = endangered.broker
    broker.create_topic("in", 4)
    broker.create_topic("out", 4)
    spec = spec_for(broker.bootstrap, "in", "group", "with_result", results="out", concurrency={"fixed": 4})
    over = threading.Event()

    def keep_asking() -> tuple[int, int]:
        answers = refusals = 0
        while not over.is_set():
            if get_offsets(port).status == 200:
                answers += 1
            else:
                refusals += 1
        return answers, refusals

    with Members("asked", spec, tmp_path, work_ms=1) as members:
        running = members.start(0)
        port = running.port
        members.wait_status(0, lambda status: len(status.partitions) == 4, "consumes")
        with ThreadPoolExecutor(ASKERS) as pool:
            asking = [pool.submit(keep_asking) for _ in range(ASKERS)]
            try:
                for _ in range(KILLS):
                    wait_until(lambda: get_offsets(port).status == 200, "it answers", 60, state=running.process.tail)
                    broker.kill()
                    broker.start()
            finally:
                over.set()
            counts = [one.result(60) for one in asking]
        assert running.process.exit_code is None
        assert get_offsets(port).status == 200
        answers, refusals = (sum(column) for column in zip(*counts, strict=True))
        figure(f"{KILLS} kills, {answers} answers, {refusals} times 503")
