"""One suite over every worker: the contract of `workers/contract.py`."""

import asyncio
import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from parallel_consumer_runtime.errors import PermanentError
from parallel_consumer_runtime.handlers import Context, DeadLetter, Handler, Record, Result, Retry, Returned, Skip
from parallel_consumer_runtime.importing import load_handler
from parallel_consumer_runtime.workers import Pool, Worker, make_worker
from tests.support.worker_source import Source, no_failure, run

KINDS = ("Async", "Thread", "Process")
PROCESSES_MAX = 10


NO_POOL = Pool("", None, no_failure)


def worker_for(kind: str, name: str, source: Source, *, processes: int = 2) -> Worker:
    """Return a worker for a handler of `tests/support/worker_handlers.py`, which every kind runs."""
    path = f"tests.support.worker_handlers:{name}"
    return make_worker(kind, fitting(kind, load_handler(path)), source, Pool(path, processes, no_failure))


def fitting(kind: str, handler: Handler) -> Handler:
    """Return the handler as the worker runs it."""
    if kind != "Async" or inspect.iscoroutinefunction(handler):
        return handler

    plain = cast("Callable[[Record, Context], Returned]", handler)

    async def coroutine(record: Record, context: Context) -> Returned:
        await asyncio.sleep(0)
        return plain(record, context)

    return coroutine


async def reached(source: Source, in_flight: int) -> None:
    """Wait until so many tasks are with handlers; the scenario's deadline bounds it."""
    while source.in_flight < in_flight:  # noqa: ASYNC110 - the source is no part of the contract and signals nothing
        await asyncio.sleep(0.002)


async def finish(worker: Worker, source: Source) -> None:
    """Start, run everything, stop, and stop again."""
    worker.start()
    worker.wake(source.limit)
    await source.all_settled.wait()
    await worker.stop()
    await worker.stop()


@pytest.mark.proves(3)
@pytest.mark.parametrize("kind", KINDS)
def test_every_task_is_settled_exactly_once(kind: str, tmp_path: Path) -> None:
    """A thousand tasks, each handed to the handler once and settled once, on the loop's thread."""

    async def scenario() -> None:
        seen = tmp_path / "seen"
        source = Source([os.fsencode(seen)] * 1000, 16)
        await finish(worker_for(kind, "note", source), source)
        assert sorted(map(int, seen.read_text().split())) == list(range(1000))
        assert source.peak <= 16
        assert set(source.attempts.values()) == {1}

    run(scenario())


@pytest.mark.proves(3)
@pytest.mark.parametrize("kind", KINDS)
def test_records_and_results_arrive_as_they_were_sent(kind: str) -> None:
    """Key, value, headers and context reach the handler; text, bytes and None reach the member."""

    async def scenario() -> None:
        source = Source([b"\x00\xff", b"", None, b"x" * 1_048_576], 2)
        await finish(worker_for(kind, "with_results", source), source)
        for offset, value in enumerate([b"\x00\xff", b"", None, b"x" * 1_048_576]):
            first, second = source.results(offset)
            assert first == Result("m-0/1", None, [], 1)
            assert second == Result(b"key", value, [("topic", "t"), ("raw", b"\xff")], None)

    run(scenario())


@pytest.mark.proves(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("name", "words"),
    [("ValueError", "x"), ("SystemExit", "3"), ("KeyboardInterrupt", ""), ("RecursionError", ""), ("MemoryError", "")],
)
def test_whatever_a_handler_raises_is_an_outcome(kind: str, name: str, words: str) -> None:
    """The worker survives every exception and reports it with its task, by its name and its words."""

    async def scenario() -> None:
        source = Source([name.encode()] * 10, 2)
        await finish(worker_for(kind, "raise_at_three", source), source)
        assert (type(source.outcomes[3]).__name__, str(source.outcomes[3])) == (name, words)
        assert {source.outcomes[n] for n in range(10) if n != 3} == {None}

    run(scenario())


@pytest.mark.proves(3)
@pytest.mark.parametrize("kind", KINDS)
def test_what_a_handler_raises_on_purpose_keeps_its_meaning(kind: str) -> None:
    """Retry with its delay, Skip and DeadLetter with their reasons: of the same classes, wherever the handler ran."""

    async def scenario() -> None:
        for name, wanted in (("Retry", Retry), ("Skip", Skip), ("DeadLetter", DeadLetter)):
            source = Source([name.encode()] * 4, 2)
            await finish(worker_for(kind, "raise_at_three", source), source)
            outcome = source.outcomes[3]
            assert type(outcome) is wanted
            assert str(outcome) == {"Retry": "later", "Skip": "not for us", "DeadLetter": "hopeless"}[name]
            assert getattr(outcome, "after_s", 1.5) == 1.5

    run(scenario())


@pytest.mark.proves(3)
@pytest.mark.parametrize("kind", KINDS)
def test_the_limit_may_change_while_running(kind: str, tmp_path: Path) -> None:
    """Raised, it is used; lowered, it is kept."""

    async def scenario() -> None:
        gate = tmp_path / "gate"
        source = Source([os.fsencode(gate)] * 40, 4)
        name = "wait_for_file_async" if kind == "Async" else "wait_for_file"
        worker = worker_for(kind, name, source, processes=PROCESSES_MAX)
        worker.start()
        worker.wake(4)
        await reached(source, 4)
        source.limit = 10
        worker.wake(6)
        await reached(source, 10)
        assert source.peak == 10
        source.limit = 2
        gate.touch()
        while source.in_flight > 2:  # noqa: ASYNC110 - as in `reached`
            await asyncio.sleep(0.002)
        source.peak = 0
        await source.all_settled.wait()
        assert source.peak <= 2
        await worker.stop()

    run(scenario())


@pytest.mark.proves(3)
@pytest.mark.parametrize("kind", KINDS)
def test_stopping_takes_nothing_more(kind: str) -> None:
    """After stop, waking takes no task."""

    async def scenario() -> None:
        source = Source([b""] * 5, 2)
        worker = worker_for(kind, "size_of", source)
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

        source = Source([None] * 100_000, 8)
        tick()
        await finish(make_worker("Async", handler, source, NO_POOL), source)
        assert turns >= 100

    run(scenario())


def test_a_handler_that_does_not_fit_its_worker_is_refused() -> None:
    """The message names the field and the way out."""

    def plain(_record: Record, _context: Context) -> None: ...

    async def coroutine(_record: Record, _context: Context) -> None: ...

    async def scenario() -> None:
        with pytest.raises(PermanentError, match=r"spec\.processing\.worker to Thread"):
            make_worker("Async", plain, Source([], 1), NO_POOL)
        for kind in ("Thread", "Process"):
            with pytest.raises(PermanentError, match=r"spec\.processing\.worker to Async"):
                make_worker(kind, coroutine, Source([], 1), NO_POOL)

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
