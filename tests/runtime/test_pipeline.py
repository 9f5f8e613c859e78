"""Processors run in order; instances are counted, shared as their scope says, and each closed exactly once."""

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import ClassVar

import pytest

from parallel_consumer_runtime.handlers import Context, Record, Returned
from parallel_consumer_runtime.pipeline import Pipeline, Scope, ScopedHandler, ThreadPipeline
from parallel_consumer_runtime.workers import AsyncWorker, ThreadWorker
from tests.support.worker_source import Source

pytestmark = pytest.mark.proves(21)
CONTEXT = Context("m-0", 1)


def record(partition: int, offset: int = 0) -> Record:
    """Return a record of a partition."""
    return Record("t", partition, offset, b"k", b"v", 0, ())


class Counted:
    """Counts its instances, its uses side by side, and its closings."""

    made: ClassVar[list["Counted"]] = []

    def __init__(self) -> None:
        self.made.append(self)
        self.uses: list[Record] = []
        self.closed = 0
        self.side_by_side = self.most = 0

    async def process(
        self, one: Record, _context: Context, forward: Callable[[Record], Awaitable[Returned]]
    ) -> Returned:
        """Note the record and let the next have it."""
        assert not self.closed
        self.side_by_side += 1
        self.most = max(self.most, self.side_by_side)
        self.uses.append(one)
        await asyncio.sleep(0.001)
        self.side_by_side -= 1
        return await forward(one)

    async def close(self) -> None:
        """Count."""
        await asyncio.sleep(0)
        self.closed += 1


class Plain:
    """Counts its threads and its closings."""

    made: ClassVar[list["Plain"]] = []

    def __init__(self) -> None:
        self.made.append(self)
        self.threads: set[int] = set()
        self.closed = 0

    def process(self, one: Record, _context: Context, forward: Callable[[Record], Returned]) -> Returned:
        """Note the thread and let the next have it."""
        self.threads.add(threading.get_ident())
        return forward(one)

    def close(self) -> None:
        """Count, and fail, which is logged and harms nobody."""
        self.closed += 1
        raise OSError("closing failed")


@pytest.fixture(autouse=True)
def _clean() -> None:
    Counted.made.clear()
    Plain.made.clear()


def test_each_processor_has_the_record_that_the_one_before_forwards() -> None:
    """A processor may change the record, answer by itself, or end the record's way."""

    class Append:
        def __init__(self, letter: bytes) -> None:
            self.letter = letter

        async def process(
            self, one: Record, context: Context, forward: Callable[[Record], Awaitable[Returned]]
        ) -> Returned:
            if one.value == b"end":
                return context.result(value=b"ended")
            return await forward(one._replace(value=(one.value or b"") + self.letter))

    class Answer:
        async def process(
            self, one: Record, context: Context, _forward: Callable[[Record], Awaitable[Returned]]
        ) -> Returned:
            await asyncio.sleep(0)
            return context.result(value=one.value)

    pipeline = Pipeline().add(lambda: Append(b"a")).add(lambda: Append(b"b")).add(Answer)
    assert asyncio.run(pipeline(record(0), CONTEXT)) == CONTEXT.result(value=b"vab")
    early = asyncio.run(pipeline(record(0)._replace(value=b"end"), CONTEXT))
    assert early == CONTEXT.result(value=b"ended")


def test_one_instance_per_process_and_one_per_partition() -> None:
    """Made when first needed; a partition's is closed when it is given up, and made anew when it comes back."""

    async def scenario() -> None:
        pipeline = Pipeline().add(Counted).add(Counted, Scope.PARTITION)
        assert isinstance(pipeline, ScopedHandler)
        await asyncio.gather(*(pipeline(record(n % 3, n), CONTEXT) for n in range(30)))
        assert sorted(len(one.uses) for one in Counted.made) == [10, 10, 10, 30]
        pipeline.end_partition("t", 1)
        pipeline.end_partition("t", 9)
        await pipeline(record(1), CONTEXT)
        assert len(Counted.made) == 5
        await pipeline.end()
        assert [one.closed for one in Counted.made] == [1] * 5

    asyncio.run(scenario())


def test_an_instance_in_use_is_closed_by_its_last_user() -> None:
    """A partition that is lost while its records run: they end first."""

    async def scenario() -> None:
        pipeline = Pipeline().add(Counted, Scope.PARTITION)
        calls = [asyncio.create_task(pipeline(record(0, n), CONTEXT)) for n in range(3)]
        await asyncio.sleep(0)
        pipeline.end_partition("t", 0)
        await asyncio.sleep(0)
        assert Counted.made[0].closed == 0
        await asyncio.gather(*calls)
        await pipeline.end()
        assert [one.closed for one in Counted.made] == [1]

    asyncio.run(scenario())


def test_one_instance_per_coroutine_which_is_never_used_side_by_side() -> None:
    """The worker says when a coroutine has ended; each instance is closed once."""

    async def scenario() -> None:
        pipeline = Pipeline().add(Counted, Scope.WORKER)
        source = Source([b"v"] * 100, 4)
        worker = AsyncWorker(pipeline, source)
        worker.start()
        worker.wake(4)
        await source.all_settled.wait()
        await worker.stop()
        await pipeline.end()
        assert 1 <= len(Counted.made) <= 4
        assert {one.most for one in Counted.made} == {1}
        assert sum(len(one.uses) for one in Counted.made) == 100
        assert [one.closed for one in Counted.made] == [1] * len(Counted.made)

    asyncio.run(scenario())


def test_one_instance_per_thread() -> None:
    """Plain processors, with the Thread worker; a close() that fails is logged and hides nothing."""

    async def scenario() -> None:
        pipeline = ThreadPipeline().add(Plain).add(Plain, Scope.WORKER).add(Plain, Scope.PARTITION)
        source = Source([b"v"] * 200, 4)
        worker = ThreadWorker(pipeline, source)
        worker.start()
        worker.wake(4)
        await source.all_settled.wait()
        await worker.stop()
        pipeline.end_partition("t", 0)
        for thread in threading.enumerate():
            if thread.name.startswith("handler-"):
                await asyncio.to_thread(thread.join, 5)
        await pipeline.end()
        assert [one.closed for one in Plain.made] == [1] * len(Plain.made)
        kinds = Counter(len(one.threads) for one in Plain.made)
        assert kinds[1] >= len(Plain.made) - 2

    asyncio.run(scenario())
