"""Handlers in processes of their own: every way to die, to hang, to start badly and to end; nothing is left behind."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest

from parallel_consumer_runtime.core import Batch, Task
from parallel_consumer_runtime.errors import RuntimeFailure, TemporaryError
from parallel_consumer_runtime.handlers import Context, Result
from parallel_consumer_runtime.workers import ProcessWorker, process_worker
from parallel_consumer_runtime.workers.contract import Call
from parallel_consumer_runtime.workers.process_worker import HandlerProcessEndedError
from tests.support import plain_pipeline
from tests.support.processes import TiedProcess
from tests.support.waiting import wait_until
from tests.support.worker_source import Source, no_failure, run, until

pytestmark = pytest.mark.proves(3)

HANDLERS = "tests.support.worker_handlers"


def worker_for(
    name: str,
    source: Source,
    processes: int,
    *,
    on_failure: Callable[[RuntimeFailure], None] = no_failure,
    linger_s: float = 30.0,
) -> ProcessWorker:
    """Return a started worker for a handler of the shared ones, or of any module."""
    path = name if ":" in name else f"{HANDLERS}:{name}"
    worker = ProcessWorker(path, source, processes, on_failure, linger_s=linger_s)
    worker.start()
    worker.wake(source.limit)
    return worker


def children() -> set[int]:
    """Return the process ids of this process's children, zombies included."""
    tasks = Path(f"/proc/{os.getpid()}/task")
    return {int(pid) for task in tasks.iterdir() for pid in (task / "children").read_text().split()}


def descriptors_open() -> set[str]:
    """Return this process's file descriptors, without the one that reads them."""
    return {path.name for path in Path("/proc/self/fd").iterdir() if path.exists()}


def is_running(pid: int) -> bool:
    """Return whether a process exists that is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction] - pytest finds it
    """After each test: no process, no zombie, no file descriptor more than before."""
    descriptors, processes = descriptors_open(), children()
    yield
    assert children() <= processes
    assert descriptors_open() <= descriptors


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (b"exit", "ended with exit status 3"),
        (b"exit-well", "ended with exit status 0"),
        (b"segfault", "was killed by SIGSEGV"),
        (b"killed", "was killed by SIGKILL (out of memory, or killed from outside)"),
    ],
    ids=["exit", "exit-well", "segfault", "killed"],
)
def test_a_crash_fails_one_record_by_name_and_costs_its_neighbours_nothing(
    kind: bytes, words: str, tmp_path: Path
) -> None:
    """Two attempts of the poison end two processes; every other record is handled once, with one attempt."""

    async def scenario() -> None:
        seen = tmp_path / "seen"
        values: list[bytes | None] = [os.fsencode(seen)] * 60
        values[17] = kind
        source = Source(values, 8, attempts_max=2)
        worker = worker_for("poison", source, 2)
        await source.all_settled.wait()
        await worker.stop()
        error = source.outcomes.pop(17)
        assert isinstance(error, HandlerProcessEndedError)
        assert str(error) == f"the handler's process {words} while it handled t[0]@17"
        assert source.attempts.pop(17) == 2
        assert set(source.attempts.values()) == {1}
        assert set(source.outcomes.values()) == {None}
        assert sorted(map(int, seen.read_text().split())) == [n for n in range(60) if n != 17]

    run(scenario())


@pytest.mark.parametrize(
    ("value", "name", "words"),
    [
        (b"raises", "ValueError", "this record is poison"),
        (b"system-exit", "SystemExit", "enough"),
        (b"recursion", "RecursionError", "maximum recursion depth exceeded"),
        (b"memory", "MemoryError", ""),
        (b"wordless", "_WordlessError", "it cannot be described: ValueError"),
        (b"surrogates", "ValueError", r"\udcff\udcfe"),
        (b"strange-return", "TypeError", "'object' object is not iterable"),
        (b"strange-result", "TypeError", "a result's key is of type object: give bytes, str or None"),
        (b"\xff\xfe", "UnicodeDecodeError", "'utf-8' codec can't decode byte 0xff"),
        (None, "TypeError", "a tombstone is nothing to handle"),
    ],
)
def test_what_goes_wrong_in_python_costs_no_process(value: bytes | None, name: str, words: str) -> None:
    """The attempt fails with its name and words; the same process handles what follows."""

    async def scenario() -> None:
        source = Source([b"fine", value, b"fine"], 4)
        worker = worker_for("poison", source, 1)
        await source.all_settled.wait()
        await worker.stop()
        assert type(source.outcomes[1]).__name__ == name
        assert words in str(source.outcomes[1])
        assert source.results(0) == source.results(2)

    run(scenario())


def test_a_process_that_is_killed_while_idle_costs_no_attempt() -> None:
    """Another one takes its place."""

    async def scenario() -> None:
        source = Source([b"fine"] * 20, 4)
        source.waiting, waiting = type(source.waiting)(), source.waiting
        worker = worker_for("poison", source, 1)
        await until(lambda: worker.pids)
        killed = worker.pids[0]
        os.kill(killed, signal.SIGKILL)
        source.waiting.extend(waiting)
        worker.wake(4)
        await source.all_settled.wait()
        assert set(source.attempts.values()) == {1}
        assert worker.pids != [killed]
        await worker.stop()

    run(scenario())


def test_a_killed_process_gives_back_what_it_had_not_begun(tmp_path: Path) -> None:
    """The record that ran has failed; the one that waited behind it has not, and is handled by the next process."""

    async def scenario() -> None:
        gate = tmp_path / "gate"
        source = Source([os.fsencode(gate)] * 2, 2)
        worker = worker_for("wait_for_file", source, 1)
        await until(lambda: source.in_flight == 2 and worker.begun(0) == 1)
        os.kill(worker.pids[0], signal.SIGKILL)
        await until(lambda: 0 in source.outcomes)
        gate.touch()
        await source.all_settled.wait()
        await worker.stop()
        assert isinstance(source.outcomes[0], HandlerProcessEndedError)
        assert (source.outcomes[1], source.attempts[1], source.returned_tasks) == (None, 1, 1)

    run(scenario())


def test_signals_to_the_group_do_not_disturb_a_drain(tmp_path: Path) -> None:
    """SIGTERM and SIGINT, as a terminal or a supervisor sends them to all, leave the processes at their records."""

    async def scenario() -> None:
        gate = tmp_path / "gate"
        source = Source([os.fsencode(gate)] * 2, 2)
        worker = worker_for("wait_for_file", source, 2)
        await until(lambda: worker.begun(0) and worker.begun(1))
        for pid in worker.pids:
            os.kill(pid, signal.SIGTERM)
            os.kill(pid, signal.SIGINT)
        gate.touch()
        await source.all_settled.wait()
        assert set(source.outcomes.values()) == {None}
        await worker.stop()

    run(scenario())


def test_processes_follow_the_limit(tmp_path: Path) -> None:
    """As many as the limit, never more than the setting; those that a lowered limit does not need leave after a while."""

    async def scenario() -> None:
        gate = tmp_path / "gate"
        gate.touch()
        before = children()
        source = Source([os.fsencode(gate)] * 3, 2)
        worker = worker_for("wait_for_file", source, 3, linger_s=0.1)
        await source.all_settled.wait()
        await until(lambda: len(worker.pids) == 2)
        source.limit = 9
        worker.wake(9)
        await until(lambda: len(worker.pids) == 3)
        survivor = worker.pids[0]
        source.limit = 1
        await until(lambda: worker.pids == [survivor] and len(children() - before) == 1)
        source.limit = 2
        worker.wake(2)
        await until(lambda: len(worker.pids) == 2)
        await worker.stop()

    run(scenario())


def test_a_slow_record_holds_up_nothing_once_records_are_known_to_be_slow() -> None:
    """Nothing waits behind a record of 30 ms, however much the limit allows."""

    async def scenario() -> None:
        source = Source([b""] * 12, 8)
        worker = worker_for("pause", source, 1)
        await until(lambda: len(source.outcomes) == 6 and source.in_flight == 1)
        source.peak = 0
        await source.all_settled.wait()
        assert source.peak == 1
        await worker.stop()

    run(scenario())


def test_a_handler_that_hangs_does_not_keep_the_member_from_ending(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told to end, then killed; stop returns soon."""

    async def scenario() -> None:
        monkeypatch.setattr(process_worker, "STOP_GRACE_S", 0.3)
        source = Source([b"hang"] * 4, 4)
        worker = worker_for("poison", source, 2)
        await until(lambda: worker.begun(0) and worker.begun(1))
        began_at = time.monotonic()
        await worker.stop()
        assert time.monotonic() - began_at < 3
        assert not source.outcomes

    run(scenario())


def test_a_handler_may_clean_up_when_the_member_ends(tmp_path: Path) -> None:
    """A handler that waits sees SystemExit, and is not killed before it is done with that."""

    async def scenario() -> None:
        source = Source([os.fsencode(tmp_path)], 1)
        worker = worker_for("wait_and_clean_up", source, 1)
        await until((tmp_path / "begun").exists)
        await worker.stop()
        assert (tmp_path / "cleaned-up").exists()

    run(scenario())


def test_stopping_while_a_process_still_starts_leaves_nothing() -> None:
    """Not even the ones that import."""

    async def scenario() -> None:
        before = children()
        source = Source([b"fine"] * 4, 4)
        worker = worker_for("poison", source, 3)
        await asyncio.sleep(0)
        assert len(children() - before) == 3
        await worker.stop()
        await worker.stop()
        worker.wake(4)
        assert not source.outcomes

    run(scenario())


def test_a_process_that_dies_at_its_start_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """After a pause that doubles; the log says how it died."""
    (tmp_path / "dies_twice.py").write_text(
        "import os, pathlib\n"
        "log = pathlib.Path(__file__).with_name('starts')\n"
        "with log.open('a') as file: file.write('x')\n"
        "if len(log.read_text()) < 3: os._exit(9)\n"
        "def handler(record, context): return None\n"
    )
    monkeypatch.syspath_prepend(tmp_path)

    async def scenario() -> None:
        monkeypatch.setattr(process_worker, "BACKOFF_FIRST_S", 0.05)
        source = Source([b""] * 3, 4)
        worker = worker_for("dies_twice:handler", source, 1)
        await source.all_settled.wait()
        await worker.stop()
        assert set(source.attempts.values()) == {1}

    run(scenario())
    said = [record.getMessage() for record in caplog.records]
    assert [line.partition("starts in ")[2] for line in said] == ["0.1 s", "0.1 s"]
    assert all("a handler process ended with exit status 9 before it began a record" in line for line in said)


def test_a_handler_that_no_process_can_import_ends_the_member(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pod that handles nothing must not look ready: after some starts the member is told, with the reason."""
    failures: list[RuntimeFailure] = []

    async def scenario() -> None:
        monkeypatch.setattr(process_worker, "BACKOFF_FIRST_S", 0.01)
        monkeypatch.setattr(process_worker, "FAILED_STARTS_MAX", 3)
        source = Source([b""], 4)
        worker = worker_for("tests.support.no_such_module:handler", source, 2, on_failure=failures.append)
        await until(lambda: failures)
        await worker.stop()
        assert not source.outcomes

    run(scenario())
    assert isinstance(failures[0], TemporaryError)
    assert "'tests.support.no_such_module' cannot be imported" in str(failures[0])


class BatchSource:
    """One batch of three records, and what became of it."""

    def __init__(self, values: list[bytes]) -> None:
        inner = Source(values, len(values))
        tasks = [task for _ in values if isinstance(task := inner.take(), Task)]
        self.batch: Batch | None = Batch(tasks)
        self.limit = 1
        self.outcome: asyncio.Future[object] = asyncio.get_running_loop().create_future()

    def take(self) -> Call | None:
        """Hand the batch out once."""
        batch, self.batch = self.batch, None
        return batch

    def context(self, call: Call) -> Context:
        """Return a member's context."""
        return Context("m-0", call.attempt)

    def succeeded(self, call: Call, returned: object) -> None:
        """Note what was returned."""
        assert isinstance(call, Batch)
        self.outcome.set_result(returned)

    def failed(self, call: Call, error: BaseException) -> None:
        """Note what was raised."""
        assert isinstance(call, Batch)
        self.outcome.set_result(error)

    def returned(self, call: Call) -> None:
        """Nothing is given back here."""
        raise AssertionError(call)


@pytest.mark.proves(4)
def test_each_record_of_a_batch_fails_or_succeeds_by_itself() -> None:
    """Results, errors and nothing come back in the records' order; a crash fails the call and names all of them."""

    async def scenario() -> None:
        source = BatchSource([b"fine", b"raises", b"surrogate-result"])
        worker = ProcessWorker(f"{HANDLERS}:batch_poison", source, 1, no_failure)
        worker.start()
        outcomes = await source.outcome
        assert isinstance(outcomes, list)
        fine, raised, strange = cast("list[object]", outcomes)
        assert fine == [Result(None, str(worker.pids[0]), (), None)]
        assert (type(raised).__name__, str(raised)) == ("ValueError", "this record is poison")
        assert type(strange).__name__ == "UnicodeEncodeError"
        await worker.stop()

        source = BatchSource([b"fine", b"segfault", b"fine"])
        worker = ProcessWorker(f"{HANDLERS}:batch_poison", source, 1, no_failure)
        worker.start()
        error = await source.outcome
        assert isinstance(error, HandlerProcessEndedError)
        assert str(error).endswith("was killed by SIGSEGV while it handled t[0]@0, t[0]@1, t[0]@2")
        await worker.stop()

    run(scenario())


@pytest.mark.proves(21)
def test_each_process_closes_the_processors_that_it_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A partition's when it is given up, the others when the process ends; each once."""
    notes = tmp_path / "notes"
    monkeypatch.setenv(plain_pipeline.NOTES_ENV, str(notes))

    def noted(what: str, scope: str = "") -> set[str]:
        lines = [line.split() for line in notes.read_text().splitlines()]
        return {name for did, of, name in lines if did == what and of.startswith(scope)}

    async def scenario() -> None:
        source = Source([b"v"] * 40, 4)
        worker = worker_for("tests.support.plain_pipeline:pipeline", source, 2)
        await source.all_settled.wait()
        made = noted("made", "PARTITION")
        worker.end_partition("t", 0)
        await until(lambda: noted("closed") == made)
        await worker.stop()
        assert noted("made") == noted("closed")
        assert len(notes.read_text().splitlines()) == 2 * 3 * len(made)
        assert len(made) in {1, 2}

    run(scenario())


def test_processes_die_with_their_member(tmp_path: Path) -> None:
    """Kill -9 of the member: processes that hang in their handler are gone at once, and nobody has to find them."""
    pids = tmp_path / "pids"
    program = (
        "import asyncio, pathlib\n"
        "from parallel_consumer_runtime.workers import ProcessWorker\n"
        "from tests.support.worker_source import Source\n"
        "async def main():\n"
        "    source = Source([b'hang'] * 4, 4)\n"
        f"    worker = ProcessWorker('{HANDLERS}:poison', source, 2, print)\n"
        "    worker.start()\n"
        "    while not (worker.begun(0) and worker.begun(1)): await asyncio.sleep(0.01)\n"
        f"    path = pathlib.Path({str(tmp_path / 'next')!r})\n"
        "    path.write_text(' '.join(map(str, worker.pids)))\n"
        f"    path.rename({str(pids)!r})\n"
        "    await asyncio.sleep(600)\n"
        "asyncio.run(main())\n"
    )
    with TiedProcess([sys.executable, "-c", program], tmp_path / "output") as member:
        wait_until(lambda: pids.exists() or member.exit_code is not None, "they hang", 20, state=member.tail)
        orphans = [int(pid) for pid in pids.read_text().split()]
        assert len(orphans) == 2
        assert all(map(is_running, orphans))
        member.send(signal.SIGKILL)
        member.wait(10)
    wait_until(lambda: not any(map(is_running, orphans)), "they are gone", 5)
