"""A pool of threads for plain functions: tasks cross to them by one queue, outcomes come back in batches."""

import asyncio
import queue
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from parallel_consumer_runtime.handlers import Context
from parallel_consumer_runtime.pipeline import ScopedHandler
from parallel_consumer_runtime.workers.contract import Call, Source, WorkerStatistics

_Settled = tuple[Call, object, BaseException | None]


class ThreadWorker:
    """Runs plain functions in as many threads as the limit allows, made when first needed."""

    def __init__(self, handler: Callable[[Any, Context], object], source: Source) -> None:
        self._handler = handler
        self._source = source
        self._loop = asyncio.get_running_loop()
        # Bounded by the source: it hands out no more than its limit.
        self._inbox: queue.SimpleQueue[tuple[Call, Context] | None] = queue.SimpleQueue()
        self._outbox: deque[_Settled] = deque()
        self._notified = False
        self._threads = 0
        self._stopping = False

    def start(self) -> None:
        """Nothing to do: threads are made by `wake`."""

    def wake(self, calls: int) -> None:
        """Hand tasks to the threads."""
        for _ in range(calls):
            if self._stopping or (call := self._source.take()) is None:
                return
            self._inbox.put((call, self._source.context(call)))
            if self._threads < self._source.limit:
                self._threads += 1
                # Daemons: a handler that hangs must not keep the process from ending.
                threading.Thread(target=self._run_until_sent_home, name=f"handler-{self._threads}", daemon=True).start()

    def end_partition(self, topic: str, partition: int) -> None:
        """Tell a pipeline."""
        if isinstance(self._handler, ScopedHandler):
            self._handler.end_partition(topic, partition)

    @property
    def statistics(self) -> WorkerStatistics:
        """See Worker."""
        return WorkerStatistics(self._threads, self._source.limit)

    async def stop(self) -> None:
        """Send the threads home; one that is busy goes when its handler returns."""
        if not self._stopping:
            self._stopping = True
            for _ in range(self._threads):
                self._inbox.put(None)

    def _run_until_sent_home(self) -> None:
        try:
            self._run()
        finally:
            if isinstance(self._handler, ScopedHandler):
                self._handler.end_worker()

    def _run(self) -> None:
        while (item := self._inbox.get()) is not None:
            call, context = item
            try:
                settled: _Settled = (call, self._handler(call.argument, context), None)
            except BaseException as error:  # noqa: BLE001 - a handler may raise anything, SystemExit included
                settled = (call, None, error)
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
            call, returned, error = self._outbox.popleft()
            if error is None:
                self._source.succeeded(call, returned)
            else:
                self._source.failed(call, error)
        self._shrink()
        self.wake(self._source.limit)

    def _shrink(self) -> None:
        while self._threads > self._source.limit:
            self._threads -= 1
            self._inbox.put(None)
