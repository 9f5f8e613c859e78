"""`spec.processing`: how records become handler calls. Everything live is marked so; the rest rolls the pods."""

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, field_validator, model_validator

from parallel_consumer_runtime.settings.kafka import TopicName
from parallel_consumer_runtime.settings.model import SettingsModel
from parallel_consumer_runtime.settings.quantities import Duration, Size

CONCURRENCY_MAX = 10_000


class Ordering(StrEnum):
    """What may not run beside each other."""

    PARTITION = "Partition"
    KEY = "Key"
    UNORDERED = "Unordered"


class Worker(StrEnum):
    """Where handlers run: coroutines on one event loop, or a pool of threads."""

    ASYNC = "Async"
    THREAD = "Thread"


class ConcurrencySpec(SettingsModel):
    """How many records one pod handles at once: fixed, or adapted between min and max. Live."""

    fixed: Annotated[int, Field(ge=1, le=CONCURRENCY_MAX)] | None = None
    """Exactly so many. Exclusive with min and max."""
    min: Annotated[int, Field(ge=1, le=CONCURRENCY_MAX)] | None = None
    """Never fewer; where adaption starts."""
    max: Annotated[int, Field(ge=1, le=CONCURRENCY_MAX)] | None = None
    """Never more: protects what the handler calls."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.fixed is not None:
            if self.min is not None or self.max is not None:
                msg = "set either fixed, or min and max"
                raise ValueError(msg)
        elif self.min is None or self.max is None:
            msg = "set either fixed, or both min and max"
            raise ValueError(msg)
        elif self.min > self.max:
            msg = "min must not be greater than max"
            raise ValueError(msg)
        return self

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the most records in flight per pod."""
        if self.fixed is not None:
            return self.fixed, self.fixed
        if self.min is None or self.max is None:  # the validator refuses this
            raise AssertionError
        return self.min, self.max


class RetrySpec(SettingsModel):
    """Retry in place: the record waits, its key with it, everything else goes on. Live."""

    max_attempts: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """Calls of the handler before the record goes to the dead-letter topic; 0 is without end. More than 0 needs
    deadLetter, because nothing is ever skipped silently. 0, because only the user knows which failures are final."""
    initial_backoff: Duration = 0.2
    """Wait before the second call; doubled for each further one."""
    max_backoff: Duration = 30.0
    """The longest wait between two calls."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.initial_backoff > self.max_backoff:
            msg = "initialBackoff must not be longer than maxBackoff"
            raise ValueError(msg)
        return self


class DeadLetterSpec(SettingsModel):
    """Where records go that used up their attempts."""

    topic: TopicName
    """A topic that exists. Dead letters keep key, value and headers, and gain headers that say where from and why."""


class BufferSpec(SettingsModel):
    """How much is read ahead of the handlers. Live."""

    records_per_partition: Annotated[int, Field(ge=1, le=1_000_000)] = 10_000
    """A partition with so many records waiting or running is paused alone, until half of them are done. Twice what one
    fetch brings of small records, because a pause throws away what was fetched ahead."""
    records: Annotated[int, Field(ge=1, le=10_000_000)] = 20_000
    """The same bound over all partitions of the pod."""
    bytes: Size = 64 * 1024**2
    """Bound of the keys' and values' bytes that wait or run in the pod."""


class ProcessingSpec(SettingsModel):
    """How records become handler calls."""

    ordering: Ordering = Ordering.KEY
    """Partition: one record of a partition at a time. Key: one record of a key at a time, in offset order. Unordered:
    no limit but concurrency. Key, because it is what most handlers silently assume."""
    worker: Worker = Worker.ASYNC
    """Async runs `async def` handlers on one event loop; Thread runs plain functions in a pool."""
    concurrency: ConcurrencySpec = ConcurrencySpec(fixed=16)
    """How many records one pod handles at once. Live."""
    retry: RetrySpec = RetrySpec()
    """What happens to a record whose handler raised. Live."""
    dead_letter: DeadLetterSpec | None = None
    """Where records go that used up their attempts."""
    buffer: BufferSpec = BufferSpec()
    """How much is read ahead. Live."""
    commit_interval: Duration = 0.1
    """Time between two commits, one in flight at most. Short, because what is done twice after a crash is what was
    done since the last commit. Live."""
    drain_timeout: Duration = 30.0
    """On shutdown or revocation: how long records in flight may take to end before their partition is given up."""
    paused: bool = False
    """Take no new records; keep membership. Live."""

    @field_validator("commit_interval")
    @classmethod
    def _bound_commit_interval(cls, seconds: float) -> float:
        if not 0.01 <= seconds <= 60.0:  # noqa: PLR2004 - stated in the message
            msg = "must lie between 10ms and 60s"
            raise ValueError(msg)
        return seconds

    @field_validator("drain_timeout")
    @classmethod
    def _bound_drain_timeout(cls, seconds: float) -> float:
        if not 0.0 <= seconds <= 3600.0:  # noqa: PLR2004 - stated in the message
            msg = "must lie between 0s and 1h"
            raise ValueError(msg)
        return seconds

    @model_validator(mode="after")
    def _last_attempt_goes_somewhere(self) -> Self:
        if self.retry.max_attempts and self.dead_letter is None:
            msg = "retry.maxAttempts needs deadLetter.topic: a record that used up its attempts must go somewhere"
            raise ValueError(msg)
        return self


class ResultsSpec(SettingsModel):
    """Where records returned by the handler go."""

    topic: TopicName
    """A topic that exists. An input is complete only after its results were acknowledged."""
