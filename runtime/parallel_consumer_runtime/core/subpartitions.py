"""What a record's shard is when it is not its key: a sub-partition of its partition. Pure."""

import zlib
from collections.abc import Callable, Hashable

from parallel_consumer_runtime.handlers import Record

ShardOf = Callable[[Record], Hashable | None]
"""Returns a record's shard in its partition; None for a record that excludes nothing."""


def hashed(count: int) -> ShardOf:
    """Return a function that spreads by the key's CRC-32; records without a key go round by offset."""

    def shard_of(record: Record) -> int:
        return record.offset % count if record.key is None else zlib.crc32(record.key) % count

    return shard_of


def round_robin(count: int) -> ShardOf:
    """Return a function that gives each record of a partition to the next sub-partition."""

    def shard_of(record: Record) -> int:
        return record.offset % count

    return shard_of
