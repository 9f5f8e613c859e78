"""Finds the handler that a manifest names, and the worker that fits it."""

import importlib
import inspect
from collections.abc import Awaitable, Callable
from typing import cast

from parallel_consumer_runtime.errors import PermanentError
from parallel_consumer_runtime.handlers import Context, Handler, Record, Returned
from parallel_consumer_runtime.workers.asyncio_worker import AsyncWorker
from parallel_consumer_runtime.workers.contract import Source, Worker
from parallel_consumer_runtime.workers.thread_worker import ThreadWorker


def load_handler(path: str) -> Handler:
    """Import `package.module:function`.

    Raises:
        PermanentError: naming spec.handler and what is wrong with it.
    """
    module_name, _, name = path.partition(":")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        msg = f"spec.handler: {module_name!r} cannot be imported ({type(error).__name__}: {error}); is it in the image?"
        raise PermanentError(msg) from error
    handler = getattr(module, name, None)
    if handler is None:
        msg = f"spec.handler: module {module_name!r} has no {name!r}"
        raise PermanentError(msg)
    if not callable(handler):
        msg = f"spec.handler: {path!r} is not callable"
        raise PermanentError(msg)
    return cast("Handler", handler)


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
