"""A handler made of processors, each with instances of its own scope: one, one per partition, or one per worker.

    pipeline = Pipeline().add(Parse).add(Enrich, Scope.PARTITION).add(Write, Scope.WORKER)

`spec.handler` names the pipeline. A processor calls `forward` with a record, its own or another one, to let the next
processors have it, and returns what they return, or results of its own; one that does not call it ends the record's way.
An instance is made by its factory when it is first needed and closed once, when its scope has ended and nothing uses it.

With the Async worker processors are `async`: use `Pipeline`. With the Thread and Process workers they are plain: use
`ThreadPipeline`; each process has instances of its own, and calls one record at a time.
"""

import asyncio
import inspect
import logging
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Protocol

from parallel_consumer_runtime.handlers import Context, Record, Returned
from parallel_consumer_runtime.pipeline.scopes import Instance, Scope, Stages

_log = logging.getLogger(__name__)


class AsyncProcessor(Protocol):
    """One step; may have `close`, plain or `async`."""

    def process(
        self, record: Record, context: Context, forward: Callable[[Record], Awaitable[Returned]]
    ) -> Awaitable[Returned]:
        """Handle a record, or forward it."""
        ...


class ThreadProcessor(Protocol):
    """One step; may have `close`."""

    def process(self, record: Record, context: Context, forward: Callable[[Record], Returned]) -> Returned:
        """Handle a record, or forward it."""
        ...


class Pipeline(Stages):
    """Processors with `async def process`, for the Async worker. Belongs to one event loop."""

    def __init__(self) -> None:
        super().__init__()
        self._closing: set[asyncio.Task[None]] = set()

    async def __call__(self, record: Record, context: Context) -> Returned:
        """Send a record through the processors."""
        return await self._forward(0, context, record)

    def end_worker(self) -> None:
        """See ScopedHandler."""
        self._end(Scope.WORKER, asyncio.current_task())

    async def end(self) -> None:
        """See ScopedHandler."""
        self._end_all()
        while self._closing:
            await asyncio.wait(self._closing)

    async def _forward(self, place: int, context: Context, record: Record) -> Returned:
        if place == len(self.stages):
            return None
        stage = self.stages[place]
        instance = stage.acquire(record, asyncio.current_task())
        try:
            processor: AsyncProcessor = instance.processor
            return await processor.process(record, context, partial(self._forward, place + 1, context))
        finally:
            if (ended := stage.release(instance)) is not None:
                self._close(ended)

    def _close(self, instance: Instance) -> None:
        task = asyncio.get_running_loop().create_task(_close_async(instance.processor))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


class ThreadPipeline(Stages):
    """Processors with a plain `process`, for the Thread and Process workers."""

    def __call__(self, record: Record, context: Context) -> Returned:
        """Send a record through the processors."""
        return self._forward(0, context, record)

    def end_worker(self) -> None:
        """See ScopedHandler."""
        self._end(Scope.WORKER, threading.get_ident())

    async def end(self) -> None:
        """See ScopedHandler."""
        self._end_all()

    def _forward(self, place: int, context: Context, record: Record) -> Returned:
        if place == len(self.stages):
            return None
        stage = self.stages[place]
        instance = stage.acquire(record, threading.get_ident())
        try:
            processor: ThreadProcessor = instance.processor
            return processor.process(record, context, partial(self._forward, place + 1, context))
        finally:
            if (ended := stage.release(instance)) is not None:
                self._close(ended)

    def _close(self, instance: Instance) -> None:
        close = getattr(instance.processor, "close", None)
        if close is not None:
            try:
                close()
            except Exception:  # noqa: BLE001 - it is the user's, and nobody is left to tell
                _log.exception("a processor's close() failed")


async def _close_async(processor: Any) -> None:
    close = getattr(processor, "close", None)
    if close is None:
        return
    try:
        ended = close()
        if inspect.isawaitable(ended):
            await ended
    except Exception:  # noqa: BLE001 - it is the user's, and nobody is left to tell
        _log.exception("a processor's close() failed")
