"""What becomes of a record whose handler raised, or asks for time: attempts, the retry topic, dead letters, deferral."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from parallel_consumer_runtime.settings.kafka import TopicName
from parallel_consumer_runtime.settings.model import SettingsModel
from parallel_consumer_runtime.settings.quantities import Between, Duration

Backoff = Annotated[Duration, Between("0s", "168h", ", for which brokers keep records unless told otherwise")]


class BackoffSpec(SettingsModel):
    """Waits that double from one attempt to the next, up to a longest one."""

    initial_backoff: Backoff
    """The first wait."""
    max_backoff: Backoff
    """The longest one."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.initial_backoff > self.max_backoff:
            msg = "initialBackoff must not be longer than maxBackoff"
            raise ValueError(msg)
        return self


class RetrySpec(BackoffSpec):
    """Retry in place: the record waits, its key with it, everything else goes on. Live."""

    max_attempts: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """Calls of the handler before the record goes to the dead-letter topic; 0 is without end. More than 0 needs
    deadLetter, because nothing is ever skipped silently. 0, because only the user knows which failures are final."""
    initial_backoff: Backoff = 0.2
    """Wait before the second call; doubled for each further one."""
    max_backoff: Backoff = 30.0
    """The longest wait between two calls."""


class RetryTopicSpec(BackoffSpec):
    """After some attempts in place, the record goes to a topic that the group consumes too.

    Its key goes on meanwhile: what comes back from there is out of its key's order.
    """

    topic: TopicName
    """A topic that exists. The record keeps key, value and headers, and gains headers that say where from, how often and
    not before when."""
    after_attempts: Annotated[int, Field(ge=1, le=1_000_000)] = 3
    """Calls in place before the record goes there, each time. 3, because most failures are over by then."""
    initial_backoff: Backoff = 10.0
    """How long a record waits in the topic the first time; doubled for each further one."""
    max_backoff: Backoff = 3600.0
    """The longest wait in the topic."""


class DeadLetterStopSpec(SettingsModel):
    """When to end instead of giving up further records."""

    max_consecutive: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """The pod ends when so many records in a row are given up, none completed between them."""
    max_ratio: Annotated[float, Field(ge=0.001, le=1)] | None = None
    """The pod ends when this part of the last `window` records is given up."""
    window: Annotated[int, Field(ge=10, le=1_000_000)] = 1000
    """Records that `maxRatio` looks at."""

    @model_validator(mode="after")
    def _one_at_least(self) -> Self:
        if self.max_consecutive is None and self.max_ratio is None:
            msg = "set maxConsecutive, maxRatio, or both"
            raise ValueError(msg)
        return self


class DeadLetterSpec(SettingsModel):
    """Where records go that used up their attempts."""

    topic: TopicName
    """A topic that exists. Dead letters keep key, value and headers, and gain headers that say where from and why."""
    stop: DeadLetterStopSpec | None = None
    """When so many records fail that the fault is rather in the handler, or in what it calls, the pod ends instead of giving
    up the whole topic. Unset, because only the user knows how many failures are normal."""


class DeferralSpec(SettingsModel):
    """Lets handlers call `context.defer()` and complete the record later, from any thread.

    Until its completion is called it counts against the concurrency and holds its key.
    """

    timeout: Annotated[Duration, Between("10ms", "24h")] = 30.0
    """A completion that did not come by then is a failed attempt."""
