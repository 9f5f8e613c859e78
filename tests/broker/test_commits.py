"""Commits carry their metadata byte for byte, in both directions, whatever the heap holds and whoever wrote it."""

import ctypes
import random
import string
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from parallel_consumer_runtime.kafka.librdkafka import Position, commit_async, commit_sync, committed
from tests.support.kafka import KafkaBroker
from tests.support.ports import free_ports
from tests.support.waiting import wait_until

ALPHABET = string.ascii_letters + string.digits + "+/"
_libc = ctypes.CDLL(None)
_libc.malloc.restype, _libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
_libc.free.restype, _libc.free.argtypes = None, [ctypes.c_void_p]


class Asker:
    """A consumer that never joins its group, and what its `on_commit` heard."""

    def __init__(self, bootstrap: str, group: str) -> None:
        self.heard: list[KafkaError | None] = []
        self.consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "enable.auto.commit": False,
                "log_level": 0,
                "on_commit": self._hear,
            }
        )

    def _hear(self, error: KafkaError | None, _: list[TopicPartition]) -> None:
        self.heard.append(error)


@pytest.fixture
def asker(kafka: KafkaBroker, topic: str, group: str) -> Iterator[Asker]:
    """An asker whose group has a coordinator."""
    found = Asker(kafka.bootstrap, group)

    def ready() -> bool:
        try:
            committed(found.consumer, [(topic, 0)], timeout_s=5)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.NOT_COORDINATOR:
                raise
            return False
        return True

    wait_until(ready, "the group has a coordinator", 30)
    yield found
    found.consumer.close()


def dirty(size_bytes: int) -> None:
    """Leave text in the memory that this thread's next allocations of that size are given."""
    room = (size_bytes + 8 + 15) // 16 * 16 - 8
    places = [_libc.malloc(room) for _ in range(6)]
    for place in places:
        ctypes.memset(place, ord("A"), room)
    for place in places:
        _libc.free(place)


def test_metadata_is_as_long_as_it_was_written(topic: str, asker: Asker) -> None:
    """Lengths up to the broker's limit, with stale text behind each of them in memory."""
    chance = random.Random(7)
    for number in range(60):
        texts = ["".join(chance.choices(ALPHABET, k=4 * round(1024 ** chance.random()))) for _ in range(4)]
        written = [Position(topic, partition, number, text) for partition, text in enumerate(texts)]
        commit_sync(asker.consumer, written)
        for text in texts:
            dirty(len(text))
        places = [(topic, partition) for partition in range(4)]
        assert committed(asker.consumer, places, timeout_s=30) == written
    assert asker.heard == []


def test_a_commit_in_the_background_is_heard_of_once(topic: str, asker: Asker) -> None:
    """`on_commit` is called from poll, and the commit is there."""
    written = Position(topic, 2, 9, "bAALLgIA")
    commit_async(asker.consumer, [written])
    wait_until(lambda: asker.consumer.poll(0.05) is None and asker.heard, "the commit is acknowledged", 30)
    assert asker.heard == [None]
    assert committed(asker.consumer, [(topic, 2)], timeout_s=30) == [written]


def test_what_was_not_committed_is_negative_and_empty(topic: str, asker: Asker) -> None:
    """A partition without a commit has no offset and no metadata."""
    (found,) = committed(asker.consumer, [(topic, 3)], timeout_s=30)
    assert found.offset < 0
    assert found.metadata == ""


def test_bytes_of_another_application_are_replaced(topic: str, asker: Asker) -> None:
    """Text that is not ASCII is read, and is no Base64 afterwards."""
    asker.consumer.commit(offsets=[TopicPartition(topic, 0, 5, "größer")], asynchronous=False)
    (found,) = committed(asker.consumer, [(topic, 0)], timeout_s=30)
    assert found.metadata.startswith("gr\ufffd")


def test_refused_metadata_is_an_error(topic: str, asker: Asker) -> None:
    """What is longer than the broker allows raises here, and reaches `on_commit` from the background."""
    long = [Position(topic, 0, 5, "A" * 5000)]
    with pytest.raises(KafkaException) as refused:
        commit_sync(asker.consumer, long)
    assert refused.value.args[0].code() == KafkaError.OFFSET_METADATA_TOO_LARGE
    commit_async(asker.consumer, long)
    wait_until(lambda: asker.consumer.poll(0.05) is None and asker.heard, "the refusal is heard", 30)
    (error,) = asker.heard
    assert error is not None
    assert error.code() == KafkaError.OFFSET_METADATA_TOO_LARGE


def test_errors_are_the_clients(topic: str) -> None:
    """An unreachable coordinator raises as every other call does; a closed consumer is named."""
    nobody = Asker(f"127.0.0.1:{free_ports(1)[0]}", "nobody").consumer
    with pytest.raises(KafkaException):
        committed(nobody, [(topic, 0)], timeout_s=0.5)
    nobody.close()
    with pytest.raises(RuntimeError, match="closed"):
        committed(nobody, [(topic, 0)], timeout_s=0.5)
