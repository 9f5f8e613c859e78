"""A pool of threads for plain functions: tasks cross to them by one queue, outcomes come back in batches."""

import asyncio
import queue
import threading
from collections import deque
from collections.abc import Callable

from parallel_consumer_runtime.core import Task
from parallel_consumer_runtime.handlers import Context, Record, Returned
from parallel_consumer_runtime.workers.contract import Source

_Settled = tuple[Task, Returned, BaseException | None]


class ThreadWorker:
    """Runs plain functions in as many threads as the limit allows, made when first needed."""

    def __init__(self, handler: Callable[[Record, Context], Returned], source: Source) -> None:
        self._handler = handler
        self._source = source
        self._loop = asyncio.get_running_loop()
        # Bounded by the source: it hands out no more than its limit.
        self._inbox: queue.SimpleQueue[tuple[Task, Context] | None] = queue.SimpleQueue()
        self._outbox: deque[_Settled] = deque()
        self._notified = False
        self._threads = 0
        self._stopping = False

    def start(self) -> None:
        """Nothing to do: threads are made by `wake`."""

    def wake(self, tasks: int) -> None:
        """Hand tasks to the threads."""
        for _ in range(tasks):
            if self._stopping or (task := self._source.take()) is None:
                return
            self._inbox.put((task, self._source.context(task)))
            if self._threads < self._source.limit:
                self._threads += 1
                # Daemons: a handler that hangs must not keep the process from ending.
                threading.Thread(target=self._run, name=f"handler-{self._threads}", daemon=True).start()

    async def stop(self) -> None:
        """Send the threads home; one that is busy goes when its handler returns."""
        if not self._stopping:
            self._stopping = True
            for _ in range(self._threads):
                self._inbox.put(None)

    def _run(self) -> None:
        while (item := self._inbox.get()) is not None:
            task, context = item
            try:
                settled: _Settled = (task, self._handler(task.record, context), None)
            except BaseException as error:  # noqa: BLE001 - a handler may raise anything, SystemExit included
                settled = (task, None, error)
            self._outbox.append(settled)
            if not self._notified and not self._stopping:
                self._notified = True
                try:
                    self._loop.call_soon_threadsafe(self._settle)
                except RuntimeError:  # the loop is closed: the process is ending
                    return

    def _settle(self) -> None:
        # Cleared first: an outcome that arrives from here on notifies again.
        self._notified = False
        while self._outbox:
            task, returned, error = self._outbox.popleft()
            if error is None:
                self._source.succeeded(task, returned)
            else:
                self._source.failed(task, error)
        self._shrink()
        self.wake(self._source.limit)

    def _shrink(self) -> None:
        while self._threads > self._source.limit:
            self._threads -= 1
            self._inbox.put(None)
