"""Processes for plain functions that keep the processor busy: one interpreter each, so that they run beside each other.

Keeps: a process that dies fails the record it had begun, by name, and gives back those it had not; nothing else notices.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from parallel_consumer_runtime.child.outcomes import HandlerError, told
from parallel_consumer_runtime.child.wire import NO_CALL, READY
from parallel_consumer_runtime.core import Batch
from parallel_consumer_runtime.errors import RuntimeFailure, TemporaryError
from parallel_consumer_runtime.workers.contract import Call, Source, WorkerStatistics, tasks_of
from parallel_consumer_runtime.workers.process_link import HandlerProcess, ending_of

PREFETCHED = 2
"""What a process has of usual records: one runs, one waits, so that it goes on without waiting for us."""
PREFETCH_NONE_ABOVE_S = 0.02
"""When records take longer on average, none waits behind another: a process then waits for us less than a hundredth of its
time, and a slow record holds up nothing."""
PREFETCH_WORK_S = 0.002
"""Of shorter records, as many as make so much work: a pipe is written and read once for several."""
PREFETCHED_MAX = 16
START_TIMEOUT_S = 300.0
"""How long importing the handler may take; models of hundreds of megabytes are loaded there."""
BACKOFF_FIRST_S = 0.1
BACKOFF_MAX_S = 10.0
FAILED_STARTS_MAX = 10
"""Starts in a row, of one place, that come to nothing while no other process is ready: then the member ends. About 40 s."""
LINGER_S = 30.0
"""How long a process that the limit no longer needs stays: a limit that adapts goes up and down."""
STOP_GRACE_S = 2.0
"""How long a handler may take to clean up when the member ends; what was in flight was drained before."""
_WATCH_S = 1.0

_log = logging.getLogger(__name__)


class HandlerProcessEndedError(Exception):
    """The process of a handler ended while the handler was at a record."""


class _Place:
    """Where one process runs after another."""

    __slots__ = ("calls", "ended", "index", "life", "process", "ready", "refusal", "retired", "sequence", "unsent")

    def __init__(self, index: int) -> None:
        self.index = index
        self.process: HandlerProcess | None = None
        self.ready = False
        """It has imported the handler and is to get calls."""
        self.refusal = ""
        """Why it is of no use, in its own words."""
        self.retired = False
        """It was told to end, because the limit no longer needs it."""
        self.sequence = NO_CALL
        self.calls: dict[int, Call] = {}
        """What the process has, by sequence number: the first runs, the others wait."""
        self.unsent: list[tuple[object, ...]] = []
        self.ended: set[tuple[str, int]] = set()
        """Partitions of which its processors are to hear the end, behind the calls that it has."""
        self.life: asyncio.Task[None] | None = None


class ProcessWorker:
    """Runs a plain function in as many processes as the limit allows, at most `processes`.

    Args:
        handler: package.module:function; each process imports it for itself.
        source: of the calls.
        processes: how many there may be.
        on_failure: told once when no process can be started for long.
        linger_s: how long a process stays that the limit no longer needs, seconds.
    """

    def __init__(
        self,
        handler: str,
        source: Source,
        processes: int,
        on_failure: Callable[[RuntimeFailure], None],
        *,
        linger_s: float = LINGER_S,
    ) -> None:
        self._handler = handler
        self._source = source
        self._on_failure = on_failure
        self._linger_s = linger_s
        self._loop = asyncio.get_running_loop()
        self._places = [_Place(index) for index in range(processes)]
        self._mean_s = 0.0
        """How long a record takes, the last eight weighing most."""
        self._settling = False
        self._restarts = self._crashes = 0
        self._stopping = asyncio.Event()

    def start(self) -> None:
        """Start the processes; records wait until one has imported the handler."""
        self._populate()

    def wake(self, calls: int) -> None:  # noqa: ARG002 - the source knows better at `take`
        """Hand calls to processes that have room."""
        self._populate()
        self._feed()

    def end_partition(self, topic: str, partition: int) -> None:
        """Tell every process, behind the calls that it has."""
        for place in self._places:
            if place.ready:
                # Kept, once each, while a call runs: to a process that hangs, messages would pile up.
                place.ended.add((topic, partition))
                if not place.calls:
                    self._send(place)

    @property
    def statistics(self) -> WorkerStatistics:
        """See Worker. The bound is that of the settings, or of the processors."""
        size = sum(place.process is not None for place in self._places)
        return WorkerStatistics(size, len(self._places), self._restarts, self._crashes)

    async def stop(self) -> None:
        """Take nothing more, end every process: those that do not end by themselves are killed after a grace period."""
        self._stopping.set()
        for place in self._places:
            if place.process is not None:
                place.process.end()
        if lives := [place.life for place in self._places if place.life is not None]:
            await asyncio.wait(lives, timeout=STOP_GRACE_S)
            for place in self._places:
                if place.process is not None:
                    place.process.kill()
            await asyncio.gather(*lives, return_exceptions=True)

    @property
    def pids(self) -> list[int]:
        """The process ids of those that have imported the handler."""
        return [place.process.pid for place in self._places if place.process is not None and place.ready]

    def begun(self, index: int) -> int:
        """How many calls the present process of a place has begun; 0 when there is none."""
        process = self._places[index].process
        return 0 if process is None else process.begun

    # Handing out, and outcomes

    def _wanted(self) -> list[_Place]:
        return self._places[: self._source.limit]

    def _feed(self) -> None:
        """Give every process one call before any gets a second; then send to each what it got, in one piece."""
        if self._settling or self._stopping.is_set():
            return
        wanted = self._wanted()
        places = [place for place in wanted if place.ready]
        given = [
            place
            for depth in range(self._prefetched(len(wanted)))
            for place in places
            if len(place.calls) == depth and self._give(place)
        ]
        for place in given:
            self._send(place)

    @staticmethod
    def _send(place: _Place) -> None:
        """Send what was given to a place since, and before it which partitions have ended."""
        if place.process is not None and (place.unsent or place.ended):
            place.process.send([*((NO_CALL, *ended, None) for ended in place.ended), *place.unsent])
            place.unsent = []
            place.ended.clear()

    def _prefetched(self, places: int) -> int:
        """Return how many calls each process may have, the one that runs included."""
        if self._mean_s > PREFETCH_NONE_ABOVE_S:
            return 1
        fitting = int(PREFETCH_WORK_S / self._mean_s) if self._mean_s else 0
        # The limit's share: none must wait behind another while a process, which may still start, has nothing to do.
        return min(max(PREFETCHED, min(PREFETCHED_MAX, fitting)), max(1, self._source.limit // places))

    def _give(self, place: _Place) -> bool:
        call = self._source.take()
        if call is None:
            return False
        context = self._source.context(call)
        place.sequence += 1
        place.calls[place.sequence] = call
        argument = [tuple(task.record) for task in call.tasks] if isinstance(call, Batch) else tuple(call.record)
        place.unsent.append((place.sequence, context.member, context.attempt, argument))
        return True

    def _hear(self, place: _Place, messages: list[Any]) -> None:
        self._settling = True
        try:
            for sequence, *said in messages:
                if sequence == NO_CALL:
                    self._start_ended(place, said)
                else:
                    self._settle(place, sequence, tuple(said))
        finally:
            self._settling = False
        self._feed()

    def _settle(self, place: _Place, sequence: int, outcome: tuple[Any, ...]) -> None:
        call = place.calls.pop(sequence)
        if place.ended and not place.calls:
            self._send(place)
        now = time.monotonic()
        took_s = now - call.started_at
        self._mean_s += (took_s - self._mean_s) / (8 if self._mean_s else 1)
        if place.calls:
            # They waited behind the one that just ended: their time begins now.
            _begin(next(iter(place.calls.values())), now)
        returned, error = told(outcome)
        if error is None:
            self._source.succeeded(call, returned)
            return
        if isinstance(error, HandlerError):
            _log.debug("%s raised\n%s", _name(call), error.told_traceback)
        self._source.failed(call, error)

    # The life of a process

    def _populate(self) -> None:
        if self._stopping.is_set():
            return
        for place in self._wanted():
            if place.life is None:
                place.life = self._loop.create_task(self._live(place))
                place.life.add_done_callback(partial(self._life_ended, place))

    async def _live(self, place: _Place) -> None:
        """Run one process after another, as long as the place is wanted."""
        failed_starts = 0
        while not self._stopping.is_set() and place.index < self._source.limit:
            how = await self._run(place)
            if how is None:
                failed_starts = 0
                continue
            failed_starts += 1
            if failed_starts >= FAILED_STARTS_MAX and not any(other.ready for other in self._places):
                self._stopping.set()
                self._on_failure(TemporaryError(f"no handler process can be started: the last one {how}"))
                return
            backoff_s = min(BACKOFF_MAX_S, BACKOFF_FIRST_S * 2 ** (failed_starts - 1))
            _log.error("a handler process %s before it began a record; the next one starts in %.1f s", how, backoff_s)
            with suppress(TimeoutError):
                async with asyncio.timeout(backoff_s):
                    await self._stopping.wait()

    async def _run(self, place: _Place) -> str | None:
        """Run one process to its end. Return why it came to nothing, None when it was of use."""
        place.refusal, place.retired = "", False
        try:
            process = place.process = HandlerProcess(self._handler, partial(self._hear, place))
        except OSError as error:
            self._restarts += 1
            return f"could not be started ({error})"
        try:
            status = await self._watch(place, process)
        finally:
            place.ready = False
            place.process = None
            process.close()
        how = place.refusal or ending_of(status)
        calls, place.calls, place.unsent = place.calls, {}, []
        place.ended.clear()
        if self._stopping.is_set():
            return None
        self._restarts += not place.retired
        self._crashes += process.begun in calls
        for sequence, call in calls.items():
            if sequence == process.begun:
                name = _name(call)
                _log.error("the handler's process %s while it handled %s; another one starts", how, name)
                self._source.failed(
                    call, HandlerProcessEndedError(f"the handler's process {how} while it handled {name}")
                )
            else:
                self._source.returned(call)
        self._feed()
        return None if process.begun or place.retired else how

    async def _watch(self, place: _Place, process: HandlerProcess) -> int:
        """Return the status of the process once it has ended; retire it when it was not needed for long."""
        started_at = needed_at = self._loop.time()
        while (status := await process.watch(min(_WATCH_S, self._linger_s))) is None:
            now = self._loop.time()
            if place.calls or place.index < self._source.limit:
                needed_at = now
            elif place.ready and now - needed_at >= self._linger_s:
                place.ready, place.retired = False, True
                process.retire()
            if process.silent or place.retired:
                return await process.reap()
            if not place.ready and now - started_at >= START_TIMEOUT_S:
                place.refusal = f"did not import {self._handler} within {START_TIMEOUT_S:.0f} s"
                process.kill()
        return status

    def _start_ended(self, place: _Place, said: list[Any]) -> None:
        if said[0] == READY:
            place.ready = True
        else:
            place.refusal = f"cannot use the handler ({said[1]})"

    def _life_ended(self, place: _Place, life: asyncio.Task[None]) -> None:
        place.life = None
        if life.cancelled():
            return
        if (error := life.exception()) is not None:
            _log.error("keeping a handler process failed", exc_info=error)
            self._on_failure(RuntimeFailure(f"keeping a handler process failed: {error!r}"))
        else:
            self._populate()


def _begin(call: Call, now: float) -> None:
    for task in tasks_of(call):
        task.started_at = now


def _name(call: Call) -> str:
    records = [task.record for task in tasks_of(call)]
    return ", ".join(f"{record.topic}[{record.partition}]@{record.offset}" for record in records)
