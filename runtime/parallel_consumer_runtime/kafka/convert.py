"""Messages become records, grouped by partition, in offset order."""

from collections.abc import Iterable

from confluent_kafka import Message

from parallel_consumer_runtime.core import PartitionKey
from parallel_consumer_runtime.handlers import Headers, Record

Batch = dict[PartitionKey, list[Record]]


def to_batch(messages: Iterable[Message]) -> Batch:
    """Group messages without errors by partition. Within a partition librdkafka returns them in offset order."""
    batch: Batch = {}
    for message in messages:
        topic, partition = message.topic() or "", message.partition() or 0
        record = Record(
            topic,
            partition,
            message.offset() or 0,
            _bytes(message.key()),
            _bytes(message.value()),
            message.timestamp()[1],
            _headers(message),
        )
        key = PartitionKey(topic, partition)
        records = batch.get(key)
        if records is None:
            batch[key] = [record]
        else:
            records.append(record)
    return batch


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def _headers(message: Message) -> Headers:
    headers = message.headers()
    if not headers:
        return ()
    pairs = headers.items() if isinstance(headers, dict) else headers
    return tuple((name, _bytes(value)) for name, value in pairs)
