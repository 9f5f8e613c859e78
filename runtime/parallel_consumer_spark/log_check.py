"""Pure: whether the log still holds a window, and what is left of it where the user lets it be clipped.

Keeps: what is returned can be read to its end, or an error says in one sentence why not.
"""

from collections.abc import Mapping
from typing import NamedTuple

from parallel_consumer_spark.broker import PartitionLog, TopicLog
from parallel_consumer_spark.errors import BrokerError, DataLossError
from parallel_consumer_spark.window import PartitionRange, TopicRange, Window

_URL_ALPHABET = str.maketrans("+/", "-_")


class Skipped(NamedTuple):
    """Offsets `[start, end)` that are gone, and that the window does without."""

    topic: str
    partition: int
    start: int
    end: int


class Checked(NamedTuple):
    """What can be read of a window."""

    topics: tuple[TopicRange, ...]
    """Only partitions that hold something."""
    skipped: tuple[Skipped, ...]
    """Nothing, unless the window says Skip."""


def check(window: Window, logs: Mapping[str, TopicLog | None]) -> Checked:
    """Return what can be read.

    Args:
        window: what is to be read.
        logs: what the brokers say of each of its topics.

    Raises:
        DataLossError: a topic is gone or was made anew, or offsets are gone.
        BrokerError: a transaction is still open below the window's end.
    """
    topics: list[TopicRange] = []
    skipped: list[Skipped] = []
    for topic in window.topics:
        wanted = [part for part in topic.partitions if part.offsets]
        if not wanted:
            continue
        log = _log_of(topic, logs.get(topic.name))
        kept: list[PartitionRange] = []
        for part in wanted:
            found = log.partitions.get(part.partition)
            if found is None:
                raise DataLossError(
                    f"{topic.name} has no partition {part.partition} now: the topic was made anew with fewer"
                )
            _check_end(topic.name, part, found)
            start = min(max(part.start, found.start), part.end)
            if start > part.start:
                gone = Skipped(topic.name, part.partition, part.start, start)
                if window.on_data_loss != "Skip":
                    raise DataLossError(
                        f"{topic.name}[{part.partition}] begins at {found.start} now: the offsets {gone.start} to {gone.end - 1} of the "
                        "window are gone; keep records longer, or set onDataLoss: Skip to do without them"
                    )
                skipped.append(gone)
            if start < part.end:
                kept.append(PartitionRange(part.partition, start, part.end))
        if kept:
            topics.append(TopicRange(topic.name, log.topic_id, tuple(kept)))
    return Checked(tuple(topics), tuple(skipped))


def _log_of(topic: TopicRange, log: TopicLog | None) -> TopicLog:
    if log is None:
        raise DataLossError(f"the topic {topic.name} is not there: the offsets of the window are gone with it")
    if topic.topic_id is not None and _safe(log.topic_id) != _safe(topic.topic_id):
        raise DataLossError(
            f"the topic {topic.name} was made anew (its id is {log.topic_id}, the window's {topic.topic_id}): offsets of the old one "
            "mean nothing in the new one"
        )
    return log


def _safe(topic_id: str) -> str:
    """Return one form of an id: the Java client writes the alphabet of URLs, librdkafka the other one."""
    return topic_id.rstrip("=").translate(_URL_ALPHABET)


def _check_end(topic: str, part: PartitionRange, log: PartitionLog) -> None:
    if part.end > log.end:
        raise DataLossError(
            f"{topic}[{part.partition}] ends at {log.end} now, below the window's end {part.end}: the log was cut, or these are other brokers"
        )
    if part.end > log.stable_end:
        raise BrokerError(
            f"{topic}[{part.partition}]: a transaction is open at {log.stable_end}, below the window's end {part.end}: run again when it has ended"
        )
