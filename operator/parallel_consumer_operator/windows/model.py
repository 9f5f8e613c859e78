"""What deciding about windows is about: an entry, what is kept of it, the runs that there are, and one reading of the world.

Everything here is plain data. Offsets are half open, `[start, end)`; times are Unix seconds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from parallel_consumer_runtime.settings.offsets import TopicRole
from parallel_consumer_runtime.settings.window import WindowKafka, WindowSpec


class Place(NamedTuple):
    """One partition."""

    topic: str
    partition: int


# What is kept


class LedgerPart(BaseModel):
    """Frozen; an unknown field is refused: what a newer operator wrote must not be cut short by an older one."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True, populate_by_name=True)


class TopicEnds(LedgerPart):
    """Where the next window of one topic starts."""

    id: str
    ends: dict[int, int]
    """By partition."""


class OpenWindow(LedgerPart):
    """The window that is being worked on."""

    window: WindowSpec
    uid: str
    """Of the SparkJob that may run it: no other does, whatever its name."""


class SkippedRange(LedgerPart):
    """Offsets that were gone before any window could hold them, and that the user's settings let go."""

    topic: str
    partition: int
    start: int
    end: int
    sequence: int
    """The first window without them."""


SKIPPED_SHOWN_MAX = 20


class Ledger(LedgerPart):
    """What is kept of one entry. Every change of it is written only if nobody else changed it since it was read."""

    sequence: int = 0
    """The last window that was cut; 0 when only the baseline is known."""
    topics: dict[str, TopicEnds] = Field(default_factory=dict[str, TopicEnds])
    """Where the next window starts."""
    open: OpenWindow | None = None
    """Its run has not succeeded yet; None when the last window is done."""
    since: float
    """When the last window was cut, or found to be empty, or the baseline was taken."""
    manual: str | None = None
    """The manual trigger's value that was answered last."""
    skipped: int = 0
    """How many offsets were skipped, in all."""
    skips: list[SkippedRange] = Field(default_factory=list[SkippedRange])
    """The last ranges of them."""

    def start(self, place: Place) -> int | None:
        """Return where a partition's next window starts, None when the partition is not known."""
        topic = self.topics.get(place.topic)
        return None if topic is None else topic.ends.get(place.partition)

    @classmethod
    def read(cls, text: str) -> Self:
        """Read what was kept.

        Raises:
            ValueError: it cannot be read; nothing may be cut then.
        """
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            msg = f"the ledger cannot be read: {error.errors()[0]['msg']}"
            raise ValueError(msg) from error

    def write(self) -> str:
        """Return it as text."""
        return self.model_dump_json(by_alias=True, exclude_none=True)


# What is wished


@dataclass(frozen=True, slots=True)
class Trigger:
    """When a window is due: whichever comes first."""

    offsets: int | None = None
    interval_s: float | None = None
    schedule: str | None = None
    """Five fields, as of cron, in UTC."""
    on_drain: bool = False
    manual: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One of `spec.sparkJobs`, as far as windows go."""

    name: str
    consumer: str
    consumer_uid: str
    kafka: WindowKafka
    source: TopicRole
    trigger: Trigger
    from_earliest: bool = False
    """The baseline is the log's start, not what is committed."""
    latest: bool = False
    """The consumer starts at the log's end where nothing is committed."""
    offsets_max: int = 1_000_000
    """How many offsets a window may hold."""
    skip_lost: bool = False
    suspended: bool = False
    successful_kept: int = 3
    failed_kept: int = 3
    retry_after_s: float = 60.0
    """After a run failed; doubled with each further one."""
    retry_after_max_s: float = 1800.0


# What is seen


@dataclass(frozen=True, slots=True)
class Run:
    """One SparkJob of the entry."""

    name: str
    uid: str
    window: WindowSpec
    created_at: float
    started: bool = False
    """Something of it was made already."""
    succeeded: bool = False
    failed: bool = False
    finished_at: float | None = None
    words: str = ""
    """Why it failed."""

    @property
    def order(self) -> tuple[int, int]:
        """Later runs compare higher."""
        return self.window.sequence, self.window.retry

    @property
    def finished(self) -> bool:
        """Whether it is over."""
        return self.succeeded or self.failed


@dataclass(frozen=True, slots=True)
class TopicOffsets:
    """One topic, read from the broker."""

    id: str | None
    """None: there is no such topic."""
    partitions: Mapping[int, tuple[int, int]]
    """Log start and end: the last stable offset under exactly once, else the high watermark."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One reading. What pods report was read first, the broker's offsets after it: the order is what makes a window whole."""

    at: float
    """When."""
    committed: Mapping[Place, int | None]
    """Acknowledged commits, of the pods that answered; None where nothing is committed yet."""
    produced: Mapping[Place, int] = field(default_factory=dict[Place, int])
    """One past the last acknowledged result or dead letter, over the pods that answered."""
    lag: int | None = None
    """None: not known."""
    broker: Mapping[str, TopicOffsets] | None = None
    """The source's topics by name; None when nobody was asked."""
    asked_at: float = 0.0
    """When the broker was asked last, for whatever reason."""
    silent: str = ""
    """Why nobody could be asked."""


# What to do


@dataclass(frozen=True, slots=True)
class Ask:
    """Read the broker's offsets, after the pods' reports, and decide again."""


@dataclass(frozen=True, slots=True)
class Keep:
    """Write the ledger, if it is still as it was read."""

    ledger: Ledger


@dataclass(frozen=True, slots=True)
class Create:
    """Create the run of a window; one that exists is as good."""

    window: WindowSpec


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete runs that are not needed any more."""

    runs: tuple[Run, ...]


class Standing(NamedTuple):
    """How the entry stands: a reason for scripts, a sentence for people."""

    reason: str
    words: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing is to be done now."""

    standing: Standing
    again_s: float | None = None
    """Look again after so long, even if nothing happens; None: when something happens."""


Decision = Ask | Keep | Create | Delete | Wait


def replaced(ledger: Ledger, **changes: Any) -> Ledger:
    """Return a ledger with changes."""
    return ledger.model_copy(update=changes)
