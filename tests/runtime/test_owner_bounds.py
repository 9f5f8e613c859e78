"""What may lie between the broker and the handlers' thread while that thread stands still: batches, and what is fetched ahead."""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence

import pytest
from confluent_kafka import Producer

from parallel_consumer_runtime.core import PartitionCommit, PartitionKey
from parallel_consumer_runtime.errors import RuntimeFailure
from parallel_consumer_runtime.kafka import owner as owner_module
from parallel_consumer_runtime.kafka.client_statistics import FetchedAhead, fetched_ahead
from parallel_consumer_runtime.kafka.config import consumer_config
from parallel_consumer_runtime.kafka.convert import Batch
from parallel_consumer_runtime.kafka.embedded import EmbeddedBroker
from parallel_consumer_runtime.kafka.owner import OUTSTANDING_MAX, ConsumerOwner
from parallel_consumer_runtime.kafka.positions import Start
from parallel_consumer_runtime.settings import ParallelConsumerSpec, render_static
from tests.support.corpus import manifest
from tests.support.waiting import wait_until

TOPIC = "orders"
RECORDS = 12_000
VALUE_BYTES = 1000
FETCHED_MAX = 256 * 1024
ONE_FETCH_BYTES = 64 * 1024
BATCH_BYTES = 16 * 1024
PARTITIONS = 4


class Keeper:
    """Counts what is told; blocks the event loop's thread with the second batch until it is told to go on."""

    def __init__(self) -> None:
        self.offsets: Counter[tuple[int, int]] = Counter()
        self.blocked, self.go_on = threading.Event(), threading.Event()
        self.done = asyncio.Event()
        self.failures: list[RuntimeFailure] = []
        self._batches = 0

    def on_assigned(self, starts: Sequence[Start]) -> None:
        """Nothing to do."""

    def on_batch(self, batch: Batch) -> None:
        """Count, and block once."""
        self._batches += 1
        if self._batches == 2:
            self.blocked.set()
            assert self.go_on.wait(60)
        for key, records in batch.items():
            self.offsets.update((key.partition, record.offset) for record in records)
        if self.offsets.total() >= RECORDS:
            self.done.set()

    async def on_revoking(self, keys: Sequence[PartitionKey]) -> list[PartitionCommit]:
        """Nothing to commit."""
        del keys
        return []

    def on_revoked(self, keys: Sequence[PartitionKey], *, lost: bool) -> None:
        """Nothing to do."""

    def on_committed(self, commits: Sequence[PartitionCommit], error: str | None) -> None:
        """Nothing to do."""

    def on_end_offsets(self, ends: dict[PartitionKey, int]) -> None:
        """Nothing to do."""

    def on_reachable(self, *, reachable: bool) -> None:
        """Nothing to do."""

    def on_failure(self, failure: RuntimeFailure) -> None:
        """Keep it."""
        self.failures.append(failure)


@pytest.fixture
def bootstrap() -> Iterator[str]:
    """A broker with forty times as much as may be fetched ahead."""
    with EmbeddedBroker() as broker:
        broker.create_topics([TOPIC])
        producer = Producer({"bootstrap.servers": broker.bootstrap, "batch.size": BATCH_BYTES, "log_level": 0})
        for number in range(RECORDS):
            producer.produce(TOPIC, bytes(VALUE_BYTES), b"%d" % number)
            producer.poll(0)
        assert producer.flush(30) == 0
        yield broker.bootstrap


@pytest.mark.proves(5)
def test_a_thread_that_stands_still_is_waited_for_with_bounded_memory(
    bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two batches wait, the client fetches ahead as much as it may, and each record comes once when the thread goes on."""
    changes = {
        "queued.max.messages.kbytes": str(FETCHED_MAX // 1024),
        "max.partition.fetch.bytes": str(ONE_FETCH_BYTES),
        "statistics.interval.ms": "100",
    }
    spec = manifest("orders", spec__kafka__bootstrapServers=bootstrap, spec__kafka__consumerConfig=changes)["spec"]
    settings = render_static("orders", ParallelConsumerSpec.model_validate(spec))
    told: list[FetchedAhead] = []

    def noted(statistics: str) -> FetchedAhead:
        told.append(fetched_ahead(statistics))
        return told[-1]

    monkeypatch.setattr(owner_module, "fetched_ahead", noted)

    async def scenario() -> None:
        keeper = Keeper()
        owner = ConsumerOwner(consumer_config(settings, "orders-0"), [TOPIC], asyncio.get_running_loop(), keeper, 1.0)
        seen: list[tuple[int, int]] = []

        def watch() -> None:
            assert keeper.blocked.wait(60)
            wait_until(lambda: owner.handed_over == OUTSTANDING_MAX, "two batches wait", 20)
            ends = time.monotonic() + 1.5  # beyond the second after which everything is paused, and polling goes on
            while time.monotonic() < ends:
                seen.append((owner.handed_over, owner.commands))
                threading.Event().wait(0.01)
            keeper.go_on.set()

        watcher = asyncio.create_task(asyncio.to_thread(watch))
        owner.start()
        async with asyncio.timeout(90):
            await watcher
            await keeper.done.wait()
        await owner.stop([])
        assert not keeper.failures
        assert set(seen) == {(OUTSTANDING_MAX, 0)}
        most = max(one.size_bytes for one in told)
        assert FETCHED_MAX * 0.9 <= most <= FETCHED_MAX + PARTITIONS * (ONE_FETCH_BYTES + BATCH_BYTES)
        assert set(keeper.offsets.values()) == {1}
        assert keeper.offsets.total() == RECORDS

    asyncio.run(scenario())


def test_a_client_that_fetches_nothing_has_nothing_ahead() -> None:
    """Statistics of before the first assignment are no error."""
    assert fetched_ahead("{}") == fetched_ahead('{"topics": {"t": {"partitions": {}}}}') == (0, 0)
