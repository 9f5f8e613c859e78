"""The work queue keeps client-go's promises, in virtual time."""

import asyncio

import pytest

from parallel_consumer_operator.queue import QueueClosedError, WorkQueue
from tests.support.virtual_time import run


def test_a_key_added_twice_is_handed_out_once() -> None:
    """Ten events about one object cost one reconcile."""

    async def scenario() -> None:
        queue = WorkQueue[str]()
        for _ in range(10):
            queue.add("a")
        queue.add("b")
        assert [await queue.get(), await queue.get()] == ["a", "b"]
        assert len(queue) == 0

    run(scenario())


def test_a_key_added_while_worked_on_comes_again_afterwards() -> None:
    """An event during a reconcile is not lost, and never runs beside it."""

    async def scenario() -> None:
        queue = WorkQueue[str]()
        queue.add("a")
        assert await queue.get() == "a"
        queue.add("a")
        queue.add("a")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(queue.get(), 1)
        queue.done("a")
        assert await queue.get() == "a"
        queue.done("a")
        assert len(queue) == queue.processing == 0

    run(scenario())


def test_failures_wait_twice_as_long_each_time_up_to_the_bound() -> None:
    """A key that keeps failing does not keep the API server busy."""

    async def scenario() -> None:
        queue = WorkQueue[str](backoff_first_s=1, backoff_max_s=10)
        loop = asyncio.get_running_loop()
        waits: list[float] = []
        for _ in range(6):
            before = loop.time()
            queue.add_failed("a")
            queue.done(await queue.get())
            waits.append(round(loop.time() - before, 6))
        assert waits == [1, 2, 4, 8, 10, 10]
        queue.forget("a")
        assert queue.add_failed("a") == 1

    run(scenario())


def test_what_is_no_news_does_not_cut_a_backoff_short() -> None:
    """Figures that move every second must not make every second a try; once it succeeded, they are heard again."""

    async def scenario() -> None:
        queue = WorkQueue[str](backoff_first_s=8)
        loop = asyncio.get_running_loop()
        queue.add("a")
        queue.add_unless_failing("a")
        await queue.get()
        queue.add_failed("a")
        queue.done("a")
        for _ in range(5):
            await asyncio.sleep(1)
            queue.add_unless_failing("a")
            assert len(queue) == 0
        await queue.get()
        assert loop.time() == 8
        queue.add_unless_failing("a")
        queue.forget("a")
        queue.done("a")
        assert len(queue) == 0
        queue.add_unless_failing("a")
        assert len(queue) == 1

    run(scenario())


def test_of_two_delays_the_shorter_counts_and_an_add_beats_both() -> None:
    """A resync far away does not hold back what is due soon, and an event holds for both."""

    async def scenario() -> None:
        queue = WorkQueue[str]()
        loop = asyncio.get_running_loop()
        queue.add_after("a", 60)
        queue.add_after("a", 5)
        queue.add_after("a", 30)
        queue.done(await queue.get())
        assert loop.time() == pytest.approx(5)
        queue.add_after("a", 60)
        queue.add("a")
        queue.done(await queue.get())
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(queue.get(), 120)

    run(scenario())


def test_closing_wakes_every_waiting_worker() -> None:
    """On shutdown no worker waits for ever."""

    async def scenario() -> None:
        queue = WorkQueue[str]()
        waiting = [asyncio.create_task(queue.get()) for _ in range(3)]
        await asyncio.sleep(1)
        queue.close()
        results = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(result) for result in results] == [QueueClosedError] * 3
        queue.add("a")
        assert len(queue) == 0

    run(scenario())


def test_two_workers_share_the_keys() -> None:
    """One slow key does not hold up the others, and each key is worked on by one worker."""

    async def scenario() -> None:
        queue = WorkQueue[int]()
        running: set[int] = set()
        seen: list[int] = []

        async def worker() -> None:
            while True:
                try:
                    key = await queue.get()
                except QueueClosedError:
                    return
                assert key not in running
                running.add(key)
                await asyncio.sleep(10 if key == 0 else 1)
                running.discard(key)
                seen.append(key)
                queue.done(key)

        workers = [asyncio.create_task(worker()) for _ in range(2)]
        for key in range(6):
            queue.add(key)
        await asyncio.sleep(9)
        assert seen == [1, 2, 3, 4, 5]
        await asyncio.sleep(2)
        queue.close()
        await asyncio.gather(*workers)
        assert seen == [1, 2, 3, 4, 5, 0]

    run(scenario())
