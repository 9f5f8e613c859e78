"""Sub-partitions: what a partition is split into when neither its keys nor the partition itself are the shards."""

import pytest

from parallel_consumer_runtime.core import Bounds, Engine, Ledger, PartitionKey, ShardOf, hashed, round_robin
from parallel_consumer_runtime.handlers import Record

P0 = PartitionKey("t", 0)
WIDE = Bounds(1_000, 1_000, 10**9)


def record(offset: int, key: bytes | None) -> Record:
    """Return a record of the partition."""
    return Record("t", 0, offset, key, b"", 0, ())


def started(shard_of: ShardOf, keys: list[bytes | None]) -> list[int]:
    """Return the offsets that an engine starts when nothing ends."""
    engine = Engine("Key", WIDE, 100, shard_of=shard_of)
    engine.assign(P0, Ledger(0))
    engine.offer(P0, [record(offset, key) for offset, key in enumerate(keys)])
    tasks = iter(lambda: engine.take(0.0), None)
    return [task.record.offset for task in tasks]


def test_hashing_puts_a_key_where_its_checksum_says() -> None:
    """The CRC-32 of "123456789" is CBF43926: any program can tell where a key goes."""
    assert [hashed(count)(record(5, b"123456789")) for count in (1, 7, 16, 1 << 32)] == [
        0,
        0xCBF43926 % 7,
        6,
        0xCBF43926,
    ]


def test_hashing_spreads_records_without_a_key_by_offset() -> None:
    """They exclude each other no more than the sub-partitions are many."""
    assert started(hashed(3), [None] * 10) == [0, 1, 2]


def test_going_round_gives_each_record_to_the_next_one() -> None:
    """Whatever the keys: the order is that of every third record."""
    assert started(round_robin(3), [b"a"] * 10) == [0, 1, 2]


@pytest.mark.parametrize("ordering", ["Partition", "Unordered"])
def test_only_key_ordering_has_sub_partitions(ordering: str) -> None:
    """The other orderings mean what they say."""
    engine = Engine(ordering, WIDE, 100, shard_of=round_robin(2))
    engine.assign(P0, Ledger(0))
    engine.offer(P0, [record(offset, b"a") for offset in range(5)])
    assert len(list(iter(lambda: engine.take(0.0), None))) == (1 if ordering == "Partition" else 5)
