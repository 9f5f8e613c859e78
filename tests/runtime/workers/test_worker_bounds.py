"""What a worker may hold: coroutines, threads, processes, and what waits for a process; and how its processes fared."""

import os
from pathlib import Path

import pytest

from parallel_consumer_runtime.importing import load_handler
from parallel_consumer_runtime.workers import Pool, ProcessWorker, Worker, make_worker
from parallel_consumer_runtime.workers.process_worker import PREFETCHED_MAX
from tests.support.worker_source import Source, no_failure, run, until

HANDLERS = "tests.support.worker_handlers"


def started(kind: str, name: str, source: Source, *, processes: int = 2) -> Worker:
    """Return a started worker of a shared handler."""
    path = f"{HANDLERS}:{name}"
    worker = make_worker(kind, load_handler(path), source, Pool(path, processes, no_failure))
    worker.start()
    worker.wake(source.limit)
    return worker


@pytest.mark.proves(3)
@pytest.mark.parametrize(
    ("kind", "name", "most"),
    [("Async", "wait_for_file_async", 5), ("Thread", "wait_for_file", 5), ("Process", "wait_for_file", 2)],
)
def test_no_more_call_handlers_than_may(kind: str, name: str, most: int, tmp_path: Path) -> None:
    """A hundred records that all wait: as many coroutines or threads as the limit, as many processes as the setting."""

    async def scenario() -> None:
        file = tmp_path / "go"
        source = Source([os.fsencode(file)] * 100, 5)
        worker = started(kind, name, source)
        await until(lambda: worker.statistics.size == most)
        for _ in range(50):
            worker.wake(100)
            assert worker.statistics.size <= worker.statistics.size_max == most
        assert source.in_flight <= 5
        file.touch()
        await source.all_settled.wait()
        assert source.peak <= 5
        await worker.stop()
        assert set(source.outcomes.values()) == {None}

    run(scenario())


@pytest.mark.proves(3)
def test_a_process_has_no_more_waiting_than_it_is_given_ahead(tmp_path: Path) -> None:
    """Quick records and a wide limit: no process is ahead of its handler by more than sixteen, and all are handled."""

    async def scenario() -> None:
        source = Source([os.fsencode(tmp_path / "seen")] * 2000, 500)
        worker = started("Process", "note", source)
        await source.all_settled.wait()
        assert source.peak <= 2 * PREFETCHED_MAX
        await worker.stop()
        assert len(source.outcomes) == 2000

    run(scenario())


@pytest.mark.proves(3)
def test_processes_that_end_by_themselves_are_counted(tmp_path: Path) -> None:
    """One dies of its record, another is killed from outside while it is idle; the ends that the member asks for count nothing."""

    async def scenario() -> None:
        values: list[bytes | None] = [os.fsencode(tmp_path / "seen")] * 20
        values[7] = b"segfault"
        source = Source(values, 4)
        worker = started("Process", "poison", source)
        assert isinstance(worker, ProcessWorker)
        await source.all_settled.wait()
        assert worker.statistics[2:] == (1, 1), "restarts, crashes"
        await until(lambda: len(worker.pids) == 2)
        os.kill(worker.pids[0], 9)
        await until(lambda: worker.statistics.restarts == 2)
        assert worker.statistics.crashes == 1
        await until(lambda: len(worker.pids) == 2)
        await worker.stop()
        assert worker.statistics == (0, 2, 2, 1)

    run(scenario())


@pytest.mark.proves(3)
def test_what_a_process_that_hangs_is_to_hear_does_not_pile_up(tmp_path: Path) -> None:
    """Its partitions come and go a thousand times meanwhile: each is kept once, and told when the handler returns."""

    async def scenario() -> None:
        file = tmp_path / "go"
        source = Source([os.fsencode(file)] * 2, 1)
        worker = started("Process", "wait_for_file", source, processes=1)
        assert isinstance(worker, ProcessWorker)
        await until(lambda: worker.begun(0))
        for number in range(1000):
            worker.end_partition("t", number % 3)
        (place,) = worker._places  # pyright: ignore[reportPrivateUsage] - what it keeps is not told
        assert len(place.ended) == 3
        file.touch()
        await source.all_settled.wait()
        assert not place.ended
        await worker.stop()

    run(scenario())
