"""The limit follows what handler calls show, on virtual time: the same for members and replays."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from parallel_consumer_runtime.adaption import Adaption
from parallel_consumer_runtime.core import Engine, Ledger, PartitionKey
from parallel_consumer_runtime.handlers import Context, Handler, Record, Retry
from parallel_consumer_runtime.outcomes import Clock
from parallel_consumer_runtime.processing import Processing
from parallel_consumer_runtime.settings import ConcurrencySpec, ParallelConsumerSpec, render_live, render_static
from tests.support.corpus import manifest
from tests.support.virtual_time import run

P0 = PartitionKey("orders", 0)
CALL_S = 0.05
RECORDS = 40_000


class Bench:
    """One engine with more records than it can handle, and its adaption."""

    def __init__(self, handler: Handler, **processing: Any) -> None:
        loop = asyncio.get_running_loop()
        changes: dict[str, Any] = {"spec__processing": {"ordering": "Unordered", **processing}}
        spec = ParallelConsumerSpec.model_validate(manifest("orders", **changes)["spec"])
        static, live = render_static("orders", spec), render_live(spec, 1)
        clock = Clock(loop.time, lambda: 0.0)
        made = Processing("orders-0", static, live, handler, None, self._failed, clock=clock)
        self.engine: Engine = made.engine
        self.adaption = Adaption(made.engine, made.dispatcher, live.concurrency)
        self._worker = made.worker
        self._running = loop.create_task(self.adaption.run())
        self.engine.assign(P0, Ledger(0))
        self._worker.start()
        self.engine.offer(P0, [Record("orders", 0, n, b"k", b"v", 0, ()) for n in range(RECORDS)], loop.time())
        made.dispatcher.wake()

    async def stop(self) -> None:
        """Let what runs end."""
        self._running.cancel()
        self.engine.halted = True
        await asyncio.sleep(2 * CALL_S)
        await self._worker.stop()

    @staticmethod
    def _failed(failure: Exception) -> None:
        raise failure


def play(scenario: Callable[[Bench], Awaitable[None]], handler: Handler, **processing: Any) -> None:
    """Run a scenario on virtual time."""

    async def whole() -> None:
        bench = Bench(handler, **processing)
        await scenario(bench)
        await bench.stop()

    run(whole())


async def waits(_record: Record, _context: Context) -> None:
    """Take as long however many run."""
    await asyncio.sleep(CALL_S)


def test_the_limit_grows_from_min_while_calls_take_no_longer() -> None:
    """After half a minute it is at max, and never above it."""

    async def scenario(bench: Bench) -> None:
        assert bench.engine.limit == 4
        seen: list[int] = []
        for _ in range(30):
            await asyncio.sleep(1)
            seen.append(bench.engine.limit)
        assert seen[0] > 4
        assert seen == sorted(seen)
        assert seen[-1] == 60
        assert bench.engine.in_flight == 60

    play(scenario, waits, concurrency={"min": 4, "max": 60})


def test_a_fixed_concurrency_stays() -> None:
    """Whatever the calls show."""

    async def scenario(bench: Bench) -> None:
        for _ in range(10):
            await asyncio.sleep(1)
            assert (bench.engine.limit, bench.engine.in_flight) == (7, 7)

    play(scenario, waits, concurrency={"fixed": 7})


def test_new_bounds_hold_at_once() -> None:
    """A limit above the new max comes down without waiting for a sample."""

    async def scenario(bench: Bench) -> None:
        bench.adaption.bound(ConcurrencySpec(min=2, max=5))
        assert bench.engine.limit == 5

    play(scenario, waits, concurrency={"min": 20, "max": 60})


def test_failures_push_the_limit_down_to_min() -> None:
    """When every fifth call fails, what is called is asked for less."""

    async def fails_sometimes(record: Record, context: Context) -> None:
        await asyncio.sleep(CALL_S)
        if record.offset % 5 == 0 and context.attempt == 1:
            raise ConnectionError("busy")

    async def scenario(bench: Bench) -> None:
        bench.adaption.bound(ConcurrencySpec(min=40, max=60))
        bench.adaption.bound(ConcurrencySpec(min=10, max=60))
        assert bench.engine.limit == 40
        await asyncio.sleep(10.5)
        assert bench.engine.limit == 10

    play(scenario, fails_sometimes, concurrency={"min": 10, "max": 60})


def test_few_failures_of_a_batch_are_few() -> None:
    """One record of twenty fails, in every second batch: that says nothing against more at once."""

    async def fails_rarely(records: Sequence[Record], context: Context) -> list[Exception | None]:
        await asyncio.sleep(CALL_S)
        return [Retry() if one.offset % 20 == 0 and context.attempt == 1 else None for one in records]

    async def scenario(bench: Bench) -> None:
        await asyncio.sleep(10.5)
        assert bench.engine.limit == 60

    play(scenario, fails_rarely, concurrency={"min": 20, "max": 60}, batch={"size": 10})
