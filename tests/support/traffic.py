"""Records for broker tests: produced with acknowledgement and written to the history, and read back."""

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, Self, cast

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka import Producer as KafkaProducer

from tests.support.history import HistoryWriter, Position, Produced
from tests.support.waiting import wait_until

FLUSH_TIMEOUT_S = 60.0
READ_TIMEOUT_S = 30.0
FEED_CHUNK = 5_000


class Received(NamedTuple):
    """One record of a topic, as a consumer sees it."""

    at: Position
    key: bytes | None
    value: bytes | None
    headers: dict[str, bytes | None]


class Traffic:
    """Produces to one topic; every acknowledged record is in the history. One thread at a time.

    Args:
        bootstrap: the broker.
        topic: where to.
        history: where acknowledged records are written.
    """

    def __init__(self, bootstrap: str, topic: str, history: HistoryWriter | None = None) -> None:
        self._topic = topic
        self._history = history
        self._acknowledged: list[Produced] = []
        self._failed: list[str] = []
        self._producer = KafkaProducer(
            {
                "bootstrap.servers": bootstrap,
                "linger.ms": 20,
                "partitioner": "murmur2_random",
                "enable.idempotence": True,  # a retry over a broker's restart would be a record that nobody produced
                "reconnect.backoff.max.ms": 500,
                "log_level": 0,
            }
        )
        self.produced = 0
        """Records acknowledged so far."""

    def send(self, records: Iterable[tuple[str | None, bytes]]) -> None:
        """Produce (key, value) pairs and return when all are acknowledged."""
        for key, value in records:
            while True:
                try:
                    self._producer.produce(
                        self._topic, value, None if key is None else key.encode(), on_delivery=self._delivered
                    )
                    break
                except BufferError:
                    self._producer.poll(0.1)
            self._producer.poll(0)
        left = self._producer.flush(FLUSH_TIMEOUT_S)
        if left or self._failed:
            raise AssertionError(f"{left} records not acknowledged, failed: {self._failed[:3]}")
        self.produced += len(self._acknowledged)
        if self._history is not None:
            self._history.write_all(self._acknowledged)
        self._acknowledged.clear()

    def _delivered(self, error: object, message: Message) -> None:
        if error is not None:
            self._failed.append(str(error))
            return
        key = message.key()
        at = Position(str(message.topic()), int(message.partition() or 0), int(message.offset() or 0))
        self._acknowledged.append(Produced(at, None if key is None else key.decode()))


def read_topic(bootstrap: str, topic: str, ends: dict[int, int]) -> list[Received]:
    """Return every record of a topic up to its ends, in no group."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "nobody",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    received: list[Received] = []
    wanted = sum(ends.values())

    def all_read() -> bool:
        for message in consumer.consume(500, timeout=0.1):
            if (error := message.error()) is not None:
                raise KafkaException(error)
            at = Position(topic, int(message.partition() or 0), int(message.offset() or 0))
            headers = dict(cast("list[tuple[str, bytes | None]]", message.headers() or []))
            received.append(Received(at, message.key(), message.value(), headers))
        return len(received) >= wanted

    try:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in ends])
        wait_until(all_read, f"{wanted} records of {topic} are read", READ_TIMEOUT_S)
    finally:
        consumer.close()
    return received


def read_committed(bootstrap: str, topic: str, partitions: int) -> list[Received]:
    """Return what a reader of committed records sees of a topic by now, in no group; what is open or aborted is not seen."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "nobody",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    received: list[Received] = []
    ended: set[int] = set()

    def all_read() -> bool:
        for message in consumer.consume(500, timeout=0.1):
            at = Position(topic, int(message.partition() or 0), int(message.offset() or 0))
            error = message.error()
            if error is None:
                headers = dict(cast("list[tuple[str, bytes | None]]", message.headers() or []))
                received.append(Received(at, message.key(), message.value(), headers))
            elif error.code() == KafkaError._PARTITION_EOF:
                ended.add(at.partition)
            else:
                raise KafkaException(error)
        return len(ended) == partitions

    try:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
        wait_until(all_read, f"{topic} is read to its end", READ_TIMEOUT_S)
    finally:
        consumer.close()
    return received


class Feeder:
    """A thread that keeps a backlog ahead of the consumers from enter to exit. Its failure is raised on exit.

    Args:
        traffic: where to produce; the thread owns it until exit.
        records: what to produce, without end.
        backlog: how many records to keep ahead.
        consumed: tells how many records the group is past; or how many it should be, for a steady rate.
        chunk: how many records are produced at once.
    """

    def __init__(
        self,
        traffic: Traffic,
        records: Iterator[tuple[str | None, bytes]],
        backlog: int,
        consumed: Callable[[], float],
        *,
        chunk: int = FEED_CHUNK,
    ) -> None:
        self._traffic = traffic
        self._records = records
        self._backlog = backlog
        self._consumed = consumed
        self._chunk = chunk
        self._stop = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="feeder", daemon=True)

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                if self._traffic.produced - self._consumed() < self._backlog:
                    self._traffic.send(itertools.islice(self._records, self._chunk))
                else:
                    self._stop.wait(0.05)
        except BaseException as error:  # noqa: BLE001 - raised again on exit, in the test's thread
            self._failure = error

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(FLUSH_TIMEOUT_S)
        if self._failure is not None:
            raise self._failure
