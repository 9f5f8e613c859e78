"""The one view of a member that everything outside reads: made on the event loop, handed to the server's threads."""

import hashlib
import threading
from collections.abc import Iterable
from typing import NamedTuple

from parallel_consumer_runtime.core import Engine, EngineStatistics, PartitionKey
from parallel_consumer_runtime.observe.held import Held
from parallel_consumer_runtime.outcomes import Counters
from parallel_consumer_runtime.settings import HeadOfLine, MemberStatus, PartitionStatus, ProducedEnd
from parallel_consumer_runtime.workers.contract import Call, WorkerStatistics, tasks_of


class Snapshot(NamedTuple):
    """One moment. Immutable."""

    status: MemberStatus
    engine: EngineStatistics
    counters: Counters
    """A copy."""
    commits: int
    commit_failures: int
    polled_at: float
    """When the owner thread last came round, monotonic seconds."""
    taken_at: float
    """When this was made, monotonic seconds."""
    joined: bool
    """The group has assigned to this member, perhaps nothing."""
    held: tuple[Held, ...]
    """What there is of all that is bounded."""
    worker: WorkerStatistics
    rate_keys_forgotten: int
    partitions_max: int
    """How many partitions have metrics of their own."""
    stuck_after_s: float | None
    """A record that runs longer makes the process unhealthy; None: never."""


class Board:
    """Holds the newest snapshot. Written by the event loop, read by any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._snapshot: Snapshot | None = None

    def put(self, snapshot: Snapshot) -> None:
        """Replace the snapshot."""
        with self._lock:
            self._snapshot = snapshot

    def get(self) -> Snapshot | None:
        """Return the newest, None before the first."""
        with self._lock:
            return self._snapshot


def partition_statuses(engine: Engine, ends: dict[PartitionKey, int]) -> list[PartitionStatus]:
    """Return the assigned partitions, in order."""
    statuses: list[PartitionStatus] = []
    for key, partition in sorted(engine.partitions.items()):
        end = ends.get(key)
        committed = partition.committed
        lag = None if end is None else max(0, end - committed) if committed is not None else end or None
        if end == 0:
            lag = 0
        statuses.append(
            PartitionStatus(
                topic=key.topic,
                partition=key.partition,
                committed=committed,
                end=end,
                lag=lag,
                buffered=partition.buffered,
                paused=partition.paused,
            )
        )
    return statuses


def produced_ends(ends: Iterable[tuple[PartitionKey, int]]) -> list[ProducedEnd]:
    """Return how far results and dead letters reach."""
    return [ProducedEnd(topic=key.topic, partition=key.partition, end=end) for key, end in ends]


def hash_of(key: bytes | None) -> str | None:
    """Return eight hexadecimal digits that stand for a key, which may be nobody else's business."""
    return None if key is None else hashlib.blake2s(key, digest_size=4).hexdigest()


def head_of_line(call: Call | None, now: float) -> HeadOfLine | None:
    """Return what is known of the oldest call in flight; the key only as a hash."""
    if call is None:
        return None
    task = tasks_of(call)[0]
    record = task.record
    return HeadOfLine(
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        age_s=round(now - task.started_at, 3),
        key_hash=hash_of(record.key),
        attempt=task.attempt,
    )
