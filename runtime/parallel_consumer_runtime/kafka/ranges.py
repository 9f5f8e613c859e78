"""Reads ranges of partitions by assigning and seeking: no group is joined, and nothing is committed."""

import logging
import time
from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from parallel_consumer_runtime.core import PartitionKey
from parallel_consumer_runtime.errors import PermanentError, TemporaryError
from parallel_consumer_runtime.kafka.config import consumer_config
from parallel_consumer_runtime.kafka.convert import Batch, to_batch
from parallel_consumer_runtime.kafka.logs import LogBounds
from parallel_consumer_runtime.settings import StaticSettings

UNREACHABLE_MAX_S = 60.0
"""How long no broker may answer before a replay gives up; it can be started again."""
# What is of a group's membership, which a reader of ranges has not.
_OF_MEMBERS = ("group.instance.id", "group.protocol", "group.remote.assignor", "partition.assignment.strategy")
_GONE = {
    KafkaError._AUTO_OFFSET_RESET,  # noqa: SLF001 - librdkafka's local codes have this form
    KafkaError.OFFSET_OUT_OF_RANGE,
}

_log = logging.getLogger(__name__)


def reads_committed(settings: StaticSettings) -> bool:
    """Whether the manifest's consumers leave out what transactions have not committed: librdkafka's default."""
    kafka = settings.kafka
    chosen = kafka.consumer_config.get("isolation.level", kafka.config.get("isolation.level", "read_committed"))
    return chosen == "read_committed"


class RangeReader:
    """Reads from each partition the offsets of its range, in order, and then no more. One thread.

    Args:
        settings: the manifest's; its fetch settings apply.
        name: the client's id.
        ranges: for each partition, the first offset and the one after the last.
    """

    def __init__(self, settings: StaticSettings, name: str, ranges: Mapping[PartitionKey, LogBounds]) -> None:
        config: dict[str, Any] = {
            **{key: value for key, value in consumer_config(settings, name).items() if key not in _OF_MEMBERS},
            # librdkafka wants the name of a group; this one never comes into being.
            "group.id": f"{settings.kafka.group_id}-replay",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "error_cb": self._on_error,
        }
        self._ends = {key: bounds.end for key, bounds in ranges.items() if bounds.start < bounds.end}
        self._unread = set(self._ends)
        self._paused: set[PartitionKey] = set()
        self._silent_since: float | None = None
        self._consumer = Consumer(config)
        self._consumer.assign([TopicPartition(*key, ranges[key].start) for key in self._ends])

    @property
    def done(self) -> bool:
        """Every range was read to its end."""
        return not self._unread

    def read(self, records_max: int) -> Batch:
        """Return what is there now, at most so many records; never blocks.

        Raises:
            PermanentError: records of a range are gone from the log.
            TemporaryError: no broker has answered for a minute, or the client failed.
        """
        # Only poll() runs callbacks; it may bring the first message along.
        first = self._consumer.poll(0)
        messages = [*([first] if first is not None else []), *self._consumer.consume(records_max - 1, 0)]
        if messages:
            self._silent_since = None
        elif self._silent_since is not None and time.monotonic() - self._silent_since > UNREACHABLE_MAX_S:
            raise TemporaryError(f"no broker has answered for {UNREACHABLE_MAX_S:g} s; start the replay again")
        return to_batch([message for message in messages if self._wanted(message)])

    def pause(self, keys: Iterable[PartitionKey]) -> None:
        """Fetch nothing more of these partitions until they are resumed."""
        chosen = self._unread.intersection(keys)
        self._consumer.pause([TopicPartition(*key) for key in chosen])

    def resume(self, keys: Iterable[PartitionKey]) -> None:
        """Fetch these partitions again, those that are not read to their end."""
        chosen = self._unread.intersection(keys)
        self._consumer.resume([TopicPartition(*key) for key in chosen])

    def close(self) -> None:
        """Close the client. Twice is fine."""
        self._consumer.close()

    def _wanted(self, message: Message) -> bool:
        """Whether a message is a record of its range. One behind the range says that the range was read."""
        key = PartitionKey(message.topic() or "", message.partition() or 0)
        error = message.error()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - as above
            self._judge(error, key)
            return False
        if key not in self._unread:
            return False
        offset, end = message.offset() or 0, self._ends[key]
        # The end of the log comes as a message of its own: what the range still lacks are no records but marks of
        # transactions, or was compacted away.
        if offset >= end - (error is None):
            self._unread.discard(key)
            self._consumer.pause([TopicPartition(*key)])
        return error is None and offset < end

    def _judge(self, error: KafkaError, key: PartitionKey) -> None:
        if error.code() in _GONE:
            msg = (
                f"{key.topic}[{key.partition}]: records of the range are gone from the log ({error.str()}); "
                "begin later, with another --from"
            )
            raise PermanentError(msg)
        self._raise_if_final(error)
        _log.warning("the broker reports: %s", error)

    def _on_error(self, error: KafkaError) -> None:
        if error.code() == KafkaError._ALL_BROKERS_DOWN:  # noqa: SLF001 - as above
            self._silent_since = self._silent_since or time.monotonic()
        elif error.code() != KafkaError.GROUP_AUTHORIZATION_FAILED:  # a group that is not used may be refused
            self._raise_if_final(error)

    @staticmethod
    def _raise_if_final(error: KafkaError) -> None:
        if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            raise PermanentError(f"the broker refuses access: {error.str()}")
        if error.fatal():
            raise TemporaryError(f"the Kafka client ended: {error.str()}") from KafkaException(error)
