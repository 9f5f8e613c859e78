"""A window: which offsets of which partitions one run of a Spark application is about, each `[start, end)`."""

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_validator

from parallel_consumer_runtime.settings.model import SettingsModel
from parallel_consumer_runtime.settings.offsets import TopicRole

Offset = Annotated[int, Field(ge=0, le=2**62)]
"""The API server reads a bound as a float: the largest 64-bit number would become the smallest."""


class OnDataLoss(StrEnum):
    """What to do about offsets that the log does not hold any more."""

    FAIL = "Fail"
    SKIP = "Skip"


class PartitionWindow(SettingsModel):
    """Offsets of one partition; none when start and end are the same."""

    partition: Annotated[int, Field(ge=0, le=2**31 - 1)]
    """Its number."""
    start: Offset
    """The first offset."""
    end: Offset
    """One past the last offset."""

    @model_validator(mode="after")
    def _forward(self) -> Self:
        if self.end < self.start:
            msg = f"partition {self.partition}: end {self.end} is below start {self.start}"
            raise ValueError(msg)
        return self


class TopicWindow(SettingsModel):
    """Offsets of one topic."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=249)]
    """Its name."""
    id: Annotated[str, StringConstraints(min_length=1, max_length=64)]
    """The broker's id of it: a topic that was made anew has another one."""
    partitions: Annotated[list[PartitionWindow], Field(max_length=10_000)]
    """Every partition that is known, those without new offsets too."""


class WindowKafka(SettingsModel):
    """How the brokers are reached."""

    bootstrap_servers: Annotated[str, StringConstraints(min_length=1, max_length=4096)]
    """As of the ParallelConsumer."""
    config: Annotated[dict[str, Annotated[str, StringConstraints(max_length=4096)]], Field(max_length=64)] = Field(
        default_factory=dict[str, str]
    )
    """librdkafka properties that say how to connect; never secrets themselves."""


class WindowSpec(SettingsModel):
    """What one run is about. A consumer's windows are numbered, and each begins where the one before ended."""

    consumer: Annotated[str, StringConstraints(min_length=1, max_length=253)]
    """The name of the ParallelConsumer that it belongs to."""
    consumer_uid: Annotated[str, StringConstraints(min_length=1, max_length=64)]
    """And its uid."""
    entry: Annotated[str, StringConstraints(min_length=1, max_length=63)]
    """The name in `spec.sparkJobs`."""
    sequence: Annotated[int, Field(ge=1)]
    """The window's number."""
    retry: Annotated[int, Field(ge=0)] = 0
    """How many runs over the same offsets failed before this one."""
    source: TopicRole
    """Which of the consumer's topics it is cut from."""
    topics: Annotated[list[TopicWindow], Field(max_length=1000)]
    """The offsets."""
    kafka: WindowKafka
    """Where they are read."""
    on_data_loss: OnDataLoss = OnDataLoss.FAIL
    """What to do about offsets that are gone by the time they are read."""
    cause: Annotated[str, StringConstraints(max_length=64)] = ""
    """Which trigger was due."""
    manual: Annotated[str, StringConstraints(max_length=253)] | None = None
    """The manual trigger's value that this window answers."""

    @property
    def offsets(self) -> int:
        """How many offsets it holds."""
        return sum(part.end - part.start for topic in self.topics for part in topic.partitions)
