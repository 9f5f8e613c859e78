"""What the engine is told and tells: its bounds, what to fetch, its counters."""

from typing import NamedTuple

from parallel_consumer_runtime.core.partition import PartitionKey


class Bounds(NamedTuple):
    """How much may wait or run."""

    records_per_partition: int
    records: int
    bytes: int
    bytes_per_partition: int = 1 << 62
    """More than there is, unless it is said."""


class Flow(NamedTuple):
    """What to fetch."""

    pause: list[PartitionKey]
    resume: list[PartitionKey]
    wanted: bool
    """Records may be offered at all."""


class EngineStatistics(NamedTuple):
    """One consistent view of the counters."""

    in_flight: int
    producing: int
    ready: int
    retrying: int
    gated: int
    """Records whose turn it was, and that wait for their time or their rate."""
    ignored: int
    buffered: int
    buffered_bytes: int
    completed: int
    skipped: int
    parked: int
    """Records held back because the map of their partition's commit is nearly full."""
    paused_partitions: int
