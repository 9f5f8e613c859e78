"""The producer of results on a real broker: where keys go, what a dead broker costs, what the settings become."""

import asyncio
import os
import zlib
from collections import Counter
from collections.abc import Coroutine, Sequence
from typing import Any

import pytest

from parallel_consumer_runtime.core import Undelivered
from parallel_consumer_runtime.errors import RuntimeFailure
from parallel_consumer_runtime.handlers import Result
from parallel_consumer_runtime.kafka.config import producer_config
from parallel_consumer_runtime.kafka.producer import ResultProducer
from parallel_consumer_runtime.settings import ParallelConsumerSpec, render_static
from tests.support.corpus import manifest
from tests.support.kafka import KafkaBroker
from tests.support.ports import free_ports
from tests.support.traffic import read_topic

PARTITIONS = 7
MURMUR2 = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}
"""Kafka's own vectors of its Java partitioner (UtilsTest)."""


def config(bootstrap: str, **producer: Any) -> dict[str, Any]:
    """Return the librdkafka properties of a manifest with these fields of spec.producer."""
    changes: dict[str, Any] = {"spec__kafka__bootstrapServers": bootstrap, "spec__producer": producer}
    spec = ParallelConsumerSpec.model_validate(manifest("orders", **changes)["spec"])
    return producer_config(render_static("orders", spec), "orders-0")


def result(key: bytes | None, value: bytes = b"v", partition: int | None = None) -> Result:
    """Return a result."""
    return Result(key, value, (), partition)


def produce(
    properties: dict[str, Any], topic: str, groups: Sequence[Sequence[Result]], *, one_by_one: bool = False
) -> list[str | None]:
    """Produce each group, all at once or each when the one before is told; return what was told, in that order."""

    async def scenario() -> list[str | None]:
        failures: list[RuntimeFailure] = []
        told: list[str | None] = []
        all_told = asyncio.Event()
        producer = ResultProducer(properties, asyncio.get_running_loop(), failures.append)

        def delivery(error: Undelivered | None) -> None:
            told.append(None if error is None else error.words)
            if len(told) == len(groups):
                all_told.set()
            elif one_by_one:
                producer.send(topic, groups[len(told)], delivery)

        producer.start()
        for group in groups[:1] if one_by_one else groups:
            producer.send(topic, group, delivery)
        async with asyncio.timeout(60):
            await all_told.wait()
        await producer.stop()
        assert failures == []
        return told

    return run(scenario())


def run(coroutine: Coroutine[Any, Any, list[str | None]]) -> list[str | None]:
    """Run a coroutine to its end."""
    return asyncio.run(coroutine)


@pytest.fixture
def target(kafka: KafkaBroker, unique: str) -> str:
    """Return a new topic of seven partitions."""
    kafka.create_topic(unique, PARTITIONS)
    return unique


@pytest.mark.proves(35)
def test_keys_go_where_the_java_client_puts_them(kafka: KafkaBroker, target: str) -> None:
    """By Kafka's own vectors of murmur2, which is the default."""
    assert set(produce(config(kafka.bootstrap), target, [[result(key)] for key in MURMUR2])) == {None}
    found = {one.key: one.at.partition for one in read_topic(kafka.bootstrap, target, kafka.end_offsets(target))}
    assert found == {key: (value & 0x7FFFFFFF) % PARTITIONS for key, value in MURMUR2.items()}


@pytest.mark.proves(35)
def test_keys_go_where_librdkafka_puts_them_by_choice(kafka: KafkaBroker, target: str) -> None:
    """CRC-32, for topics that its family of clients fills."""
    keys = [b"key-%d" % n for n in range(200)]
    produce(config(kafka.bootstrap, partitioner="Crc32"), target, [[result(key) for key in keys]])
    found = {one.key: one.at.partition for one in read_topic(kafka.bootstrap, target, kafka.end_offsets(target))}
    assert found == {key: zlib.crc32(key) % PARTITIONS for key in keys}


@pytest.mark.proves(35)
def test_a_named_partition_wins_and_keyless_records_spread(kafka: KafkaBroker, target: str) -> None:
    """A result may name its partition; records without a key stick for a batch, and reach every partition in time."""
    produce(config(kafka.bootstrap), target, [[result(b"21", partition=n) for n in range(PARTITIONS)]])
    named = Counter(one.at.partition for one in read_topic(kafka.bootstrap, target, kafka.end_offsets(target)))
    assert named == dict.fromkeys(range(PARTITIONS), 1)
    produce(config(kafka.bootstrap), target, [[result(None)]] * 200, one_by_one=True)
    spread = Counter(one.at.partition for one in read_topic(kafka.bootstrap, target, kafka.end_offsets(target)))
    assert all(spread[partition] > 5 for partition in range(PARTITIONS)), spread


@pytest.mark.proves(36)
def test_every_setting_reaches_the_client() -> None:
    """As librdkafka names it; properties of producerConfig go last, what is managed wins."""
    found = config(
        "x:1",
        linger="20ms",
        batchBytes="64Ki",
        compression="Zstd",
        bufferBytes="8Mi",
        deliveryTimeout="30s",
        maxInFlight=2,
    )
    expected = {
        "linger.ms": 20,
        "batch.size": 65_536,
        "compression.type": "zstd",
        "queue.buffering.max.kbytes": 8192,
        "delivery.timeout.ms": 30_000,
        "max.in.flight.requests.per.connection": 2,
        "enable.idempotence": True,
        "acks": "all",
    }
    assert {name: found[name] for name in expected} == expected


@pytest.mark.proves(36)
def test_a_dead_broker_is_an_outcome_and_memory_stays_bounded() -> None:
    """Twenty times what the buffer holds: every group is told of the timeout, and the client never held more than its bound."""
    groups = [[result(b"k", bytes(10_000))] for _ in range(2000)]
    properties = config(f"127.0.0.1:{free_ports(1)[0]}", deliveryTimeout="1s", bufferBytes="1Mi")
    before_kib = resident_kib()
    told = produce(properties, "nowhere", groups)
    grown_kib = resident_kib() - before_kib
    assert len(told) == 2000
    assert all(error is not None and "timed out" in error.lower() for error in told), set(told)
    assert grown_kib < 16 * 1024, f"{grown_kib} KiB more, for a buffer of 1 MiB"


def resident_kib() -> int:
    """Return this process's resident memory."""
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - not a file of ours
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024
