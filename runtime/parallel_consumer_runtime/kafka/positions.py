"""Where an assigned partition starts: the committed offset, and the ledger that its metadata describes.

Metadata that cannot be read is never fatal and never skips a record: a warning, a counter, and the records after the
committed offset are handled again.
"""

import logging
import time
from collections.abc import Sequence
from typing import NamedTuple

from confluent_kafka import OFFSET_INVALID, Consumer, KafkaException, TopicPartition

from parallel_consumer_runtime.core import Ledger, PartitionCommit, PartitionKey
from parallel_consumer_runtime.core.map_bounds import METADATA_SIZE_MAX
from parallel_consumer_runtime.errors import TemporaryError
from parallel_consumer_runtime.kafka.librdkafka import Position, committed
from parallel_consumer_runtime.offsets import OffsetMap, OffsetMetadataError, decode, encode_within

_LOOKUP_TIMEOUT_S = 5.0
_LOOKUP_DEADLINE_S = 60.0
"""Longer than a transaction, and its end by the broker, that another member left open: until then the offsets are unstable."""
_LOOKUP_PAUSE_S = 0.1
"""Between two tries: a coordinator that is moving refuses at once, and would be asked without end."""

_log = logging.getLogger(__name__)


class Start(NamedTuple):
    """Where one partition starts."""

    key: PartitionKey
    offset: int
    """The committed offset, or OFFSET_INVALID to apply auto.offset.reset."""
    ledger: Ledger
    readable: bool
    """False when there was metadata and it could not be read."""
    assignment: int = 0
    """Numbers the owner thread's assignments: a partition that comes back has another one."""


def starts(
    consumer: Consumer, partitions: Sequence[TopicPartition], *, latest: bool = False, exact: bool = False
) -> list[Start]:
    """Ask the group for its commits. Owner thread; blocks up to a minute.

    Args:
        consumer: whose group.
        partitions: which were assigned.
        latest: a partition without a usable commit starts at its log's end. That is settled here and committed at once,
            since a member that stops before it handled anything would else start at a later end, and skip what lies between.
        exact: nothing may be handled again: a map whose log's end cannot be read now is not given up for that.

    Raises:
        TemporaryError: when the coordinator does not answer.
    """
    if not partitions:
        return []
    deadline = time.monotonic() + _LOOKUP_DEADLINE_S
    while True:
        try:
            found = committed(consumer, [(p.topic, p.partition) for p in partitions], timeout_s=_LOOKUP_TIMEOUT_S)
            return [(latest and _at_end(consumer, one)) or _start(consumer, one, exact=exact) for one in found]
        except KafkaException as error:
            if time.monotonic() >= deadline:
                msg = f"the group's committed offsets could not be read: {error}"
                raise TemporaryError(msg) from error
            time.sleep(_LOOKUP_PAUSE_S)


def to_commit(commit: PartitionCommit, size_max: int = METADATA_SIZE_MAX) -> Position:
    """Return the commit with its map as metadata, at most `size_max` characters long."""
    metadata = ""
    if commit.incomplete:
        metadata, _ = encode_within(OffsetMap(commit.offset, commit.highest, commit.incomplete), size_max)
    key = commit.source.key
    return Position(key.topic, key.partition, commit.offset, metadata)


def _at_end(consumer: Consumer, partition: Position) -> Start | None:
    """Return a start at the log's end where the commit is none, or lies outside of the log; else None."""
    key = PartitionKey(partition.topic, partition.partition)
    try:
        log_start, log_end = consumer.get_watermark_offsets(TopicPartition(*key), timeout=_LOOKUP_TIMEOUT_S)
    except KafkaException as error:
        _log.warning("%s[%d]: the log's end could not be read (%s)", key.topic, key.partition, error)
        return None
    if log_start <= partition.offset <= log_end:
        return None
    ledger = Ledger(log_end)
    ledger.dirty = True
    return Start(key, log_end, ledger, readable=True)


def _start(consumer: Consumer, partition: Position, *, exact: bool = False) -> Start:
    key = PartitionKey(partition.topic, partition.partition)
    if partition.offset < 0:
        return Start(key, OFFSET_INVALID, Ledger(), readable=True)
    base = partition.offset
    if not partition.metadata:
        return Start(key, base, Ledger(base), readable=True)
    try:
        _, log_end = consumer.get_watermark_offsets(TopicPartition(*key), timeout=_LOOKUP_TIMEOUT_S)
        known = decode(partition.metadata, base, log_end=log_end)
    except (OffsetMetadataError, KafkaException) as error:
        if exact and isinstance(error, KafkaException):
            raise
        _log.warning(
            "%s[%d]: the metadata committed at offset %d cannot be read (%s); its records are handled again",
            key.topic,
            key.partition,
            base,
            error,
        )
        return Start(key, base, Ledger(base), readable=False)
    return Start(key, base, Ledger(base, known.highest, known.incomplete), readable=True)
