"""How fast and how much: concurrency, batches, rates, buffers. What is live says so; the rest rolls the pods."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from parallel_consumer_runtime.settings.model import SettingsModel
from parallel_consumer_runtime.settings.quantities import Between, Duration, Size

CONCURRENCY_MAX = 10_000
BATCH_MAX = 10_000

Rate = Annotated[float, Field(ge=-1, le=10_000_000)]


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


class BatchSpec(SettingsModel):
    """Hands the handler lists: it is called as `handler(records, context)`.

    It returns None when all are done, or a list with one outcome for each record: None, results, or an exception such as
    `Retry()`, which it returns and does not raise.
    """

    size: Annotated[int, Field(ge=1, le=BATCH_MAX)]
    """Records of one call at most. Each of them counts against the concurrency."""
    minimum: Annotated[int, Field(ge=1, le=BATCH_MAX)] = 1
    """Fewer records than this wait for others, for `linger` at most. 1, because waiting costs latency and brings nothing
    unless a call is much dearer than a record."""
    linger: Annotated[Duration, Between("0s", "60s")] = 0.1
    """How long records wait for `minimum`."""
    same_key: bool = False
    """All records of a call have one key (under Partition ordering: one partition), in offset order. Off: no two
    records of a call have the same key, unless the ordering is Unordered."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.minimum > self.size:
            msg = "minimum must not be greater than size"
            raise ValueError(msg)
        return self


class RateLimitSpec(SettingsModel):
    """Records per second that may start in one pod: -1 is no limit, 0 starts none. Live."""

    records: Rate = -1.0
    """Of all partitions together."""
    records_per_partition: Rate = -1.0
    """Of each partition by itself."""
    records_per_key: Rate = -1.0
    """Of each key by itself; its other records wait behind, other keys go on."""
    keys: Annotated[int, Field(ge=1, le=10_000_000)] = 100_000
    """Keys whose rates are remembered at once. Beyond it the key that was longest without a record is forgotten, and may start
    one too soon. 100,000, which take some 20 MB when all of them are in use."""


class BufferSpec(SettingsModel):
    """How much is read ahead of the handlers. Live."""

    records_per_partition: Annotated[int, Field(ge=1, le=1_000_000)] = 10_000
    """A partition with so many records waiting or running is paused alone, until half of them are done. Twice what one
    fetch brings of small records, because a pause throws away what was fetched ahead."""
    records: Annotated[int, Field(ge=1, le=10_000_000)] = 20_000
    """The same bound over all partitions of the pod."""
    bytes_per_partition: Size = 32 * 1024**2
    """A partition whose keys and values that wait or run take so many bytes is paused alone, until half of them are done. Half of
    `bytes`, so that one partition of large records leaves room for the others."""
    bytes: Size = 64 * 1024**2
    """Bound of the keys' and values' bytes that wait or run in the pod."""
