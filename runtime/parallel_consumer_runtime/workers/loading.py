"""Finds the worker that fits a handler."""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, cast

from parallel_consumer_runtime.errors import PermanentError, RuntimeFailure
from parallel_consumer_runtime.handlers import Context, Handler
from parallel_consumer_runtime.workers.asyncio_worker import AsyncWorker
from parallel_consumer_runtime.workers.contract import Source, Worker
from parallel_consumer_runtime.workers.cpus import usable_cpus
from parallel_consumer_runtime.workers.process_worker import ProcessWorker
from parallel_consumer_runtime.workers.thread_worker import ThreadWorker


class Pool(NamedTuple):
    """What processes need beyond what every worker gets."""

    handler: str
    """package.module:function: each process imports it for itself."""
    processes: int | None
    """How many there may be; None for one per processor that this container may use."""
    on_failure: Callable[[RuntimeFailure], None]
    """Told when no process can be started for long."""


def make_worker(kind: str, handler: Handler, source: Source, pool: Pool | None = None) -> Worker:
    """Return the worker for a kind (Async, Thread or Process) and a handler that fits it. On the event loop's thread.

    Raises:
        PermanentError: when they do not fit.
    """
    coroutine = inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(type(handler).__call__)
    if kind == "Async":
        if not coroutine:
            msg = "spec.handler is a plain function, which would block the event loop: make it `async def`, or set spec.processing.worker to Thread"
            raise PermanentError(msg)
        return AsyncWorker(cast("Callable[[Any, Context], Awaitable[object]]", handler), source)
    if coroutine:
        msg = "spec.handler is `async def`: set spec.processing.worker to Async"
        raise PermanentError(msg)
    if kind == "Process":
        assert pool is not None
        return ProcessWorker(pool.handler, source, pool.processes or usable_cpus(), pool.on_failure)
    return ThreadWorker(cast("Callable[[Any, Context], object]", handler), source)
