"""Whether a record whose turn it is may start: ignored keys, records that are scheduled for later, rate limits. Pure.

A record that must wait keeps its key waiting, because order comes before speed; other keys go on.
"""

import math
from collections.abc import Callable, Collection, Hashable
from hashlib import blake2b

from parallel_consumer_runtime.core.rates import KEYS_MAX, RateLimit, Rates
from parallel_consumer_runtime.core.shards import Task
from parallel_consumer_runtime.handlers import Record

_NAME_MAX_BYTES = 64
IGNORE = -math.inf
"""The record is complete without a call."""

Schedule = Callable[[Record], float]
"""Returns the monotonic time before which a record may not start, -inf when it may at once."""


class Gates:
    """The gates of one member; replaced as a whole when the live settings change them.

    Args:
        rates: records per second.
        ignored_keys: keys whose records are complete without a call.
        schedule: None when no record is scheduled.
        keys_max: keys whose rates are remembered.
    """

    __slots__ = ("_ignored_keys", "_key", "_member", "_partition", "_schedule", "rates")

    def __init__(
        self,
        rates: Rates,
        ignored_keys: Collection[bytes] = (),
        schedule: Schedule | None = None,
        keys_max: int = KEYS_MAX,
    ) -> None:
        self.rates = rates
        self._ignored_keys = frozenset(ignored_keys)
        self._schedule = schedule
        self._member = RateLimit(rates.member)
        self._partition = RateLimit(rates.per_partition)
        self._key = RateLimit(rates.per_key, keys_max)

    @property
    def keys_remembered(self) -> int:
        """How many keys' rates are remembered."""
        return self._key.remembered

    @property
    def keys_forgotten(self) -> int:
        """Keys that were forgotten before their time, because there were too many."""
        return self._key.forgotten

    @property
    def needed(self) -> bool:
        """Whether any record could have to wait, or be ignored."""
        return not self.rates.unlimited or bool(self._ignored_keys) or self._schedule is not None

    def opens_at(self, now: float) -> float:
        """Return when the member may start its next record."""
        return -math.inf if self.rates.member < 0 else self._member.ready_at(None, now)

    def partition_opens_at(self, task: Task, now: float) -> float:
        """Return when the task's partition may start its next record."""
        return -math.inf if self.rates.per_partition < 0 else self._partition.ready_at(task.partition.key, now)

    def partition_allowance(self, key: Hashable, now: float) -> tuple[int, float]:
        """Return how many records of a throttled partition may start now, and when the next one may."""
        return self._partition.allowance(key, now)

    def ready_at(self, task: Task, now: float) -> float:
        """Return when this record may start by itself, whatever its partition's rate; IGNORE when it is to be ignored."""
        record = task.record
        if record.key is not None and record.key in self._ignored_keys:
            return IGNORE
        at = now if self._schedule is None else self._schedule(record)
        if self.rates.per_key >= 0 and record.key is not None:
            at = max(at, self._key.ready_at(_name(record.topic, record.key), now))
        return max(at, 0.0)

    def spend(self, task: Task, now: float) -> None:
        """The task starts now."""
        if self.rates.member >= 0:
            self._member.spend(None, now)
        if self.rates.per_partition >= 0:
            self._partition.spend(task.partition.key, now)
        if self.rates.per_key >= 0 and task.record.key is not None:
            self._key.spend(_name(task.record.topic, task.record.key), now)


def _name(topic: str, key: bytes) -> Hashable:
    """Return what stands for a key: its hash when it is long, because names are counted and not weighed."""
    return topic, key if len(key) <= _NAME_MAX_BYTES else blake2b(key, digest_size=_NAME_MAX_BYTES).digest()
