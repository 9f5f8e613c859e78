"""Finds the worker that fits a handler."""

import inspect
from collections.abc import Awaitable, Callable
from typing import cast

from parallel_consumer_runtime.errors import PermanentError
from parallel_consumer_runtime.handlers import Context, Handler, Record, Returned
from parallel_consumer_runtime.workers.asyncio_worker import AsyncWorker
from parallel_consumer_runtime.workers.contract import Source, Worker
from parallel_consumer_runtime.workers.thread_worker import ThreadWorker


def make_worker(kind: str, handler: Handler, source: Source) -> Worker:
    """Return the worker for a kind (Async or Thread) and a handler that fits it. On the event loop's thread.

    Raises:
        PermanentError: when they do not fit.
    """
    coroutine = inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(type(handler).__call__)
    if kind == "Async":
        if not coroutine:
            msg = "spec.handler is a plain function, which would block the event loop: make it `async def`, or set spec.processing.worker to Thread"
            raise PermanentError(msg)
        return AsyncWorker(cast("Callable[[Record, Context], Awaitable[Returned]]", handler), source)
    if coroutine:
        msg = "spec.handler is `async def`: set spec.processing.worker to Async"
        raise PermanentError(msg)
    return ThreadWorker(cast("Callable[[Record, Context], Returned]", handler), source)
