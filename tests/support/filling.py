"""Records put where a test wants them: in a partition, under a key, with a time; and records taken away as retention does."""

from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any, NamedTuple, cast

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka import Producer as KafkaProducer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from tests.support.waiting import wait_until

TIMEOUT_S = 60.0


class Placed(NamedTuple):
    """One record to produce."""

    partition: int
    key: str
    value: bytes = b"x"
    timestamp_ms: int = 0
    """Unix milliseconds; 0 is now."""


def fill(bootstrap: str, topic: str, records: Iterable[Placed], *, transactional_id: str | None = None) -> None:
    """Produce records in order and return when all are acknowledged; in one transaction when it has an id."""
    config: dict[str, str | int] = {"bootstrap.servers": bootstrap, "linger.ms": 20, "log_level": 0}
    if transactional_id is not None:
        config["transactional.id"] = transactional_id
    producer, failed = KafkaProducer(config), list[str]()
    if transactional_id is not None:
        producer.init_transactions(TIMEOUT_S)
        producer.begin_transaction()
    for one in records:
        producer.produce(
            topic,
            one.value,
            one.key,
            partition=one.partition,
            timestamp=one.timestamp_ms,
            on_delivery=lambda error, _: None if error is None else failed.append(str(error)),
        )
    left = producer.flush(TIMEOUT_S)
    assert not left, f"{left} records not acknowledged"
    assert not failed, failed[:3]
    if transactional_id is not None:
        producer.commit_transaction(TIMEOUT_S)


def delete_below(bootstrap: str, topic: str, offsets: dict[int, int]) -> None:
    """Delete each partition's records below an offset, as retention would."""
    admin = cast("Any", AdminClient({"bootstrap.servers": bootstrap, "log_level": 0}))
    asked: dict[TopicPartition, Future[Any]] = admin.delete_records(
        [TopicPartition(topic, partition, offset) for partition, offset in offsets.items()]
    )
    for future in asked.values():
        future.result(TIMEOUT_S)


def add_partitions(bootstrap: str, topic: str, total: int) -> None:
    """Let a topic have so many partitions."""
    admin = cast("Any", AdminClient({"bootstrap.servers": bootstrap, "log_level": 0}))
    admin.create_partitions([NewPartitions(topic, total)])[topic].result(TIMEOUT_S)


def replace_topic(bootstrap: str, topic: str, partitions: int) -> None:
    """Delete a topic and make it again as soon as its name is free, before its consumers have noticed."""
    admin = cast("Any", AdminClient({"bootstrap.servers": bootstrap, "log_level": 0}))
    admin.delete_topics([topic])[topic].result(TIMEOUT_S)

    def made() -> bool:
        try:
            admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(TIMEOUT_S)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
            return False
        return True

    wait_until(made, f"{topic} is made again", TIMEOUT_S)
