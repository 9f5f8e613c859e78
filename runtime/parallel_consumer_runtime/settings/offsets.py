"""What a pod tells at `/offsets`: where the logs of its topics begin and end, as the brokers said when they were asked."""

from enum import StrEnum

from parallel_consumer_runtime.settings.status import StatusModel


class TopicRole(StrEnum):
    """What a topic is to the consumer."""

    INPUT = "Input"
    RESULTS = "Results"
    DEAD_LETTERS = "DeadLetters"


class PartitionOffsets(StatusModel):
    """One partition's log."""

    partition: int
    start: int
    """The offset of its first record, or of the next when it has none."""
    end: int
    """What readers come to: the last stable offset under exactly once, else the high watermark."""


class TopicOffsets(StatusModel):
    """One topic in one role; a topic that has two roles is told twice."""

    name: str
    id: str | None
    """Changes when a topic is deleted and made again; in the letters that Kafka's own tools print. None: there is no such
    topic."""
    role: TopicRole
    partitions: list[PartitionOffsets]
    """In order; none when there is no such topic."""


class OffsetsAnswer(StatusModel):
    """The answer to one request, asked of the brokers after it came."""

    at: float
    """When the brokers were asked: Unix time, seconds. Nothing in it is older."""
    topics: list[TopicOffsets]
    """Input topics, by name; then results; then dead letters."""
