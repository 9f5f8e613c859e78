"""One suite over every worker: the contract of `workers/contract.py`."""

import asyncio
import inspect
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from parallel_consumer_runtime.core import Ledger, Partition, PartitionKey, Task
from parallel_consumer_runtime.errors import PermanentError
from parallel_consumer_runtime.handlers import Context, Handler, Record, Returned
from parallel_consumer_runtime.importing import load_handler
from parallel_consumer_runtime.workers import Worker, make_worker

KINDS = ("Async", "Thread")
Body = Callable[[Record, Context], Returned]


class Source:
    """Tasks in a queue, outcomes in a list."""

    def __init__(self, tasks: int, limit: int) -> None:
        partition = Partition(PartitionKey("t", 0), 1, Ledger(0), {})
        self.waiting = deque(Task(Record("t", 0, n, None, None, 0, ()), partition, None) for n in range(tasks))
        self.limit = limit
        self.in_flight = self.peak = 0
        self.outcomes: dict[int, object] = {}
        self.left = tasks
        self.all_settled = asyncio.Event()
        self.thread = threading.get_ident()

    def take(self) -> Task | None:
        assert threading.get_ident() == self.thread
        if not self.waiting or self.in_flight >= self.limit:
            return None
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        task = self.waiting.popleft()
        task.attempt += 1
        return task

    def context(self, task: Task) -> Context:
        return Context("m-0", task.attempt)

    def succeeded(self, task: Task, returned: Returned) -> None:
        self._settled(task, returned)

    def failed(self, task: Task, error: BaseException) -> None:
        self._settled(task, error)

    def returned(self, task: Task) -> None:
        assert threading.get_ident() == self.thread
        self.in_flight -= 1
        task.attempt -= 1
        self.waiting.appendleft(task)

    def _settled(self, task: Task, outcome: object) -> None:
        assert threading.get_ident() == self.thread
        assert task.record.offset not in self.outcomes, "settled twice"
        self.outcomes[task.record.offset] = outcome
        self.in_flight -= 1
        self.left -= 1
        if self.left == 0:
            self.all_settled.set()


def fitting(kind: str, body: Body) -> Handler:
    """Return the body as the kind of handler that the worker runs."""
    if kind == "Thread":
        return body

    async def handler(record: Record, context: Context) -> Returned:
        await asyncio.sleep(0)
        return body(record, context)

    return handler


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run a test's coroutine, with a deadline."""

    async def bounded() -> None:
        async with asyncio.timeout(20):
            await coroutine

    asyncio.run(bounded())


async def reached(source: Source, in_flight: int) -> None:
    """Wait until so many tasks are with handlers; the test's deadline bounds it."""
    while source.in_flight < in_flight:  # noqa: ASYNC110 - the source is no part of the contract and signals nothing
        await asyncio.sleep(0)


async def finish(worker: Worker, source: Source) -> None:
    """Start, run everything, stop, and stop again."""
    worker.start()
    worker.wake(source.limit)
    await source.all_settled.wait()
    await worker.stop()
    await worker.stop()


@pytest.mark.parametrize("kind", KINDS)
def test_every_task_is_settled_exactly_once(kind: str) -> None:
    """A thousand tasks, each handed to the handler once and settled once, on the loop's thread."""

    async def scenario() -> None:
        seen: list[int] = []
        source = Source(1000, 16)
        worker = make_worker(kind, fitting(kind, lambda record, _context: seen.append(record.offset)), source)
        await finish(worker, source)
        assert sorted(seen) == list(range(1000))
        assert source.peak <= 16

    run(scenario())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "error", [ValueError("x"), SystemExit(3), KeyboardInterrupt(), RecursionError(), MemoryError()]
)
def test_whatever_a_handler_raises_is_an_outcome(kind: str, error: BaseException) -> None:
    """The worker survives every exception and reports it with its task."""

    async def scenario() -> None:
        def body(record: Record, _context: Context) -> None:
            if record.offset == 3:
                raise error

        source = Source(10, 2)
        await finish(make_worker(kind, fitting(kind, body), source), source)
        assert source.outcomes[3] is error
        assert [source.outcomes[n] for n in (0, 9)] == [None, None]

    run(scenario())


@pytest.mark.parametrize("kind", KINDS)
def test_the_limit_may_change_while_running(kind: str) -> None:
    """Raised, it is used; lowered, it is kept."""

    async def scenario() -> None:
        gate = threading.Semaphore(0)
        released = asyncio.Event()

        def blocking(_record: Record, _context: Context) -> None:
            gate.acquire()

        async def waiting(_record: Record, _context: Context) -> None:
            await released.wait()

        source = Source(40, 4)
        worker = make_worker(kind, blocking if kind == "Thread" else waiting, source)
        worker.start()
        worker.wake(4)
        await reached(source, 4)
        source.limit = 10
        worker.wake(6)
        await reached(source, 10)
        source.limit = 2
        source.peak = 0
        gate.release(40)
        released.set()
        await source.all_settled.wait()
        assert source.peak <= 10
        await worker.stop()

    run(scenario())


@pytest.mark.parametrize("kind", KINDS)
def test_stopping_takes_nothing_more(kind: str) -> None:
    """After stop, waking takes no task."""

    async def scenario() -> None:
        source = Source(5, 2)
        worker = make_worker(kind, fitting(kind, lambda _record, _context: None), source)
        worker.start()
        await worker.stop()
        worker.wake(2)
        await asyncio.sleep(0)
        assert len(source.waiting) == 5

    run(scenario())


def test_handlers_that_never_wait_leave_the_loop_its_turns() -> None:
    """A hundred thousand calls without a single suspension do not starve other callbacks."""

    async def scenario() -> None:
        turns = 0

        def tick() -> None:
            nonlocal turns
            turns += 1
            asyncio.get_running_loop().call_soon(tick)

        async def handler(_record: Record, _context: Context) -> None:
            return None

        source = Source(100_000, 8)
        tick()
        await finish(make_worker("Async", handler, source), source)
        assert turns >= 100

    run(scenario())


def test_a_handler_that_does_not_fit_its_worker_is_refused() -> None:
    """The message names the field and the way out."""

    def plain(_record: Record, _context: Context) -> None: ...

    async def coroutine(_record: Record, _context: Context) -> None: ...

    async def scenario() -> None:
        with pytest.raises(PermanentError, match=r"spec\.processing\.worker to Thread"):
            make_worker("Async", plain, Source(0, 1))
        with pytest.raises(PermanentError, match=r"spec\.processing\.worker to Async"):
            make_worker("Thread", coroutine, Source(0, 1))

    run(scenario())


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("no.such.module:f", "cannot be imported"),
        ("json:no_such", "has no 'no_such'"),
        ("json:__name__", "is not callable"),
    ],
)
def test_a_handler_that_cannot_be_loaded_names_its_field(path: str, words: str) -> None:
    """spec.handler is named, and what is wrong with it."""
    with pytest.raises(PermanentError, match=r"spec\.handler") as caught:
        load_handler(path)
    assert words in str(caught.value)
    assert not inspect.iscoroutinefunction(load_handler("json:loads"))
