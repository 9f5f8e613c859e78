"""Bounds between handlers and brokers, filled to the brim: they hold, and every record is complete in the end."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from parallel_consumer_runtime.core import Ledger, Partition, PartitionKey, Task, Undelivered
from parallel_consumer_runtime.errors import RuntimeFailure
from parallel_consumer_runtime.handlers import Completion, Context, Handler, Record, Result, Skip
from parallel_consumer_runtime.kafka.client_logs import KINDS_MAX, LineLimit
from parallel_consumer_runtime.observe.slow import SlowWatch
from parallel_consumer_runtime.outcomes import Clock, Counters
from parallel_consumer_runtime.outlet import RESULT_BYTES
from parallel_consumer_runtime.processing import Processing
from parallel_consumer_runtime.results import Refusals
from parallel_consumer_runtime.settings import ParallelConsumerSpec, render_live, render_static
from tests.support.corpus import manifest
from tests.support.virtual_time import run

P0 = PartitionKey("orders", 0)


class Silent:
    """A broker that answers nothing until it is told to."""

    def __init__(self) -> None:
        self.sent: list[Result] = []
        self.deliveries: list[Callable[[Undelivered | None], None]] = []

    def send(
        self,
        topic: str,
        results: Sequence[Result],
        delivery: Callable[[Undelivered | None], None],
        source: Partition,
    ) -> None:
        del topic, source
        self.sent += results
        self.deliveries.append(delivery)

    def answer(self, error: Undelivered | None = None) -> None:
        """Acknowledge everything that was sent, or say why not."""
        deliveries, self.deliveries = self.deliveries, []
        for delivery in deliveries:
            delivery(error)


def processing_for(handler: Handler, sender: Silent, **changes: Any) -> Processing:
    """Return a started Processing on the running loop's clock, with one partition."""

    def failed(failure: RuntimeFailure) -> None:
        raise AssertionError(failure)

    fields: dict[str, Any] = {"spec__results": {"topic": "quotes"}, **changes}
    spec = ParallelConsumerSpec.model_validate(manifest("orders", **fields)["spec"])
    clock = Clock(asyncio.get_running_loop().time, lambda: 1_750_000_000.0)
    made = Processing(
        "orders-0", render_static("orders", spec), render_live(spec, 1), handler, sender, failed, clock=clock
    )
    made.engine.assign(P0, Ledger(0))
    made.worker.start()
    return made


def offer(processing: Processing, count: int) -> None:
    """Offer so many records, each under a key of its own."""
    records = [Record(*P0, number, b"%d" % number, b"v", 0, ()) for number in range(count)]
    processing.engine.offer(P0, records, asyncio.get_running_loop().time())
    processing.dispatcher.wake()


def play(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a scenario on virtual time."""
    run(scenario())


@pytest.mark.proves(36)
@pytest.mark.parametrize("batch", [None, {"size": 4}])
def test_a_silent_broker_bounds_what_handlers_may_return(batch: dict[str, int] | None) -> None:
    """Records are handed out until the buffer's bytes are on their way; with each answer more; in the end all, each once."""
    calls_max, size_bytes, bound = 8, 10_000, 256 * 1024

    async def one(record: Record, context: Context) -> Result:
        await asyncio.sleep(0.01)
        return context.result(key=record.key, value=bytes(size_bytes))

    async def several(records: Sequence[Record], context: Context) -> list[Result]:
        return [await one(record, context) for record in records]

    async def scenario() -> None:
        sender = Silent()
        work: dict[str, Any] = {"concurrency": {"fixed": calls_max}}
        handler: Handler = one
        if batch is not None:
            work["batch"], handler = batch, several
        changes: dict[str, Any] = {"spec__processing": work, "spec__producer": {"bufferBytes": "256Ki"}}
        processing = processing_for(handler, sender, **changes)
        outlet, engine = processing.dispatcher.outcomes.outlet, processing.engine
        offer(processing, 1000)
        peak = 0
        async with asyncio.timeout(1000):
            while engine.completed < 1000:
                await asyncio.sleep(1)
                peak = max(peak, outlet.held_bytes)
                if engine.completed < 900:
                    assert engine.outlet_full
                    assert engine.in_flight == 0, "what ran has ended, and nothing was begun since"
                sender.answer()
        assert bound <= peak <= bound + calls_max * (size_bytes + 10 + RESULT_BYTES)
        assert outlet.held_bytes == 0
        assert not engine.outlet_full
        assert sorted(int(result.key or b"") for result in sender.sent) == list(range(1000))

    play(scenario)


@pytest.mark.proves(36)
def test_empty_results_are_bounded_too() -> None:
    """A handler that returns thousands of empty results fills the buffer all the same."""

    async def handler(_: Record, context: Context) -> list[Result]:
        return [context.result() for _ in range(1000)]

    async def scenario() -> None:
        sender = Silent()
        work = {"concurrency": {"fixed": 1}}
        changes: dict[str, Any] = {"spec__processing": work, "spec__producer": {"bufferBytes": "512Ki"}}
        processing = processing_for(handler, sender, **changes)
        offer(processing, 20)
        for answered in range(20):
            await asyncio.sleep(1)
            assert len(sender.sent) <= 3000 * (answered + 1)
            sender.answer()
        await asyncio.sleep(1)
        sender.answer()
        assert processing.engine.completed == 20

    play(scenario)


@pytest.mark.proves(36)
def test_results_that_are_not_acknowledged_leave_their_room() -> None:
    """A broker that refuses everything once: what failed does not count for ever, and all is done in the end."""

    async def handler(record: Record, context: Context) -> Result:
        return context.result(key=record.key, value=bytes(1000))

    async def scenario() -> None:
        sender = Silent()
        changes: dict[str, Any] = {"spec__producer": {"bufferBytes": "8Ki"}}
        processing = processing_for(handler, sender, **changes)
        offer(processing, 50)
        await asyncio.sleep(1)
        sender.answer(Undelivered("timed out", permanent=False))
        assert processing.dispatcher.outcomes.outlet.held_bytes == 0
        async with asyncio.timeout(10_000):
            while processing.engine.completed < 50:
                await asyncio.sleep(1)
                sender.answer()
        assert processing.dispatcher.outcomes.outlet.held_bytes == 0

    play(scenario)


def test_deferred_records_are_no_more_than_the_concurrency() -> None:
    """Every handler defers: as many as may be in flight wait for their completion, and each completion lets one more in."""

    async def scenario() -> None:
        completions: list[Completion] = []

        async def handler(_: Record, context: Context) -> None:
            await asyncio.sleep(0)
            completions.append(context.defer())

        work = {"concurrency": {"fixed": 4}, "deferral": {"timeout": "1h"}}
        processing = processing_for(handler, Silent(), spec__processing=work)
        offer(processing, 100)
        for number in range(100):
            await asyncio.sleep(0.1)
            assert processing.dispatcher.deferred == processing.engine.in_flight == min(4, 100 - number)
            completions[number].complete()
        await asyncio.sleep(0.1)
        assert processing.engine.completed == 100
        assert processing.dispatcher.deferred == 0

    play(scenario)


def test_the_keys_of_rates_are_no_more_than_the_setting() -> None:
    """A thousand keys with a rate each: fifty are remembered, the others forgotten and counted, and every record runs."""

    async def handler(_: Record, __: Context) -> None:
        await asyncio.sleep(0)

    async def scenario() -> None:
        work = {"rateLimit": {"recordsPerKey": 0.01, "keys": 50}}
        processing = processing_for(handler, Silent(), spec__processing=work)
        offer(processing, 1000)
        await asyncio.sleep(1)
        assert processing.engine.completed == 1000
        assert processing.gates.keys_remembered == 50
        assert processing.gates.keys_forgotten == 950

    play(scenario)


def test_a_rate_remembers_a_long_key_without_keeping_it() -> None:
    """A key of a megabyte has its rate as any other; what is remembered of it is short."""

    async def handler(_: Record, __: Context) -> None:
        await asyncio.sleep(0)

    async def scenario() -> None:
        processing = processing_for(handler, Silent(), spec__processing={"rateLimit": {"recordsPerKey": 0.1}})
        keys = [b"a" * 2**20, b"a" * 2**20, b"b" * 2**20]
        records = [Record(*P0, offset, key, b"v", 0, ()) for offset, key in enumerate(keys)]
        processing.engine.offer(P0, records, asyncio.get_running_loop().time())
        processing.dispatcher.wake()
        await asyncio.sleep(1)
        assert processing.engine.completed == 2, "one of each key"
        await asyncio.sleep(10)
        assert processing.engine.completed == 3

    play(scenario)


def test_refused_results_are_remembered_of_no_more_records_than_may_be_buffered() -> None:
    """The newest are remembered; a bound that is lowered live holds from the next on."""
    most = 5
    refusals = Refusals(lambda: most)
    partition = Partition(P0, 1, Ledger(0), {})
    tasks = [Task(Record(*P0, offset, None, None, 0, ()), partition, None) for offset in range(20)]
    for task in tasks[:10]:
        refusals.remember(task, "too large")
        refusals.remember(task, "too large, again")
    assert len(refusals) == 5
    assert [refusals.of(task) for task in tasks[4:6]] == [None, "too large, again"]
    most = 2
    refusals.remember(tasks[10], "too large")
    assert len(refusals) == 2
    assert refusals.of(tasks[9]) is not None


def test_kinds_of_log_lines_are_bounded() -> None:
    """A thousand kinds: as many counters as are allowed, and a line of each kind is written."""
    limit = LineLimit()
    lines = [logging.LogRecord("c", logging.WARNING, "", 0, f"KIND{number} x", None, None) for number in range(1000)]
    assert all(limit.filter(line) for line in lines)
    assert limit.kinds == KINDS_MAX


def test_slow_calls_are_remembered_no_longer_than_they_run() -> None:
    """A hundred slow calls are counted once each; when they have ended they are forgotten."""
    counters = Counters()
    watch = SlowWatch(counters)
    partition = Partition(P0, 1, Ledger(0), {})
    calls = [Task(Record(*P0, offset, None, None, 0, ()), partition, None) for offset in range(100)]
    for _ in range(3):
        watch.look(calls, 1.0, 10.0)
        assert counters.slow == watch.remembered == 100
    watch.look([], 1.0, 11.0)
    assert watch.remembered == 0


def test_failures_are_logged_a_few_each_second(caplog: pytest.LogCaptureFixture) -> None:
    """Two thousand failures within a second: five lines, and then one that says how many were left out."""

    async def handler(record: Record, _: Context) -> None:
        await asyncio.sleep(0)
        if record.offset < 2000:
            raise Skip if asyncio.get_running_loop().time() > 10 else ValueError

    async def scenario() -> None:
        work = {"retry": {"initialBackoff": "20s", "maxBackoff": "20s"}, "concurrency": {"fixed": 100}}
        processing = processing_for(handler, Silent(), spec__processing=work)
        offer(processing, 2000)
        await asyncio.sleep(5)
        assert processing.dispatcher.counters.failures == 2000
        lines = [line for line in caplog.messages if "is tried again" in line]
        assert len(lines) == 5
        await asyncio.sleep(30)
        assert processing.engine.completed == 2000

    with caplog.at_level(logging.WARNING):
        play(scenario)
