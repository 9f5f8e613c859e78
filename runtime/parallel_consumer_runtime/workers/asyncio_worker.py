"""Coroutines that pull: no task object, no thread crossing and no queue per record.

Keeps: as many coroutines as the limit allows, made when first needed; those above a lowered limit end when idle.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from parallel_consumer_runtime.handlers import Context
from parallel_consumer_runtime.pipeline import ScopedHandler
from parallel_consumer_runtime.workers.contract import Source, WorkerStatistics

_STRAIGHT_MAX = 256
"""Handler calls of all coroutines that may follow each other before the loop gets a turn: handlers that never wait must not starve
rebalances, acknowledgements and commits."""


class AsyncWorker:
    """Runs `async def` handlers on the event loop that made it."""

    def __init__(self, handler: Callable[[Any, Context], Awaitable[object]], source: Source) -> None:
        self._handler = handler
        self._source = source
        self._pullers: set[asyncio.Task[None]] = set()
        self._idle: deque[asyncio.Future[bool]] = deque()
        self._straight = 0
        self._stopping = False

    def start(self) -> None:
        """Nothing to do: coroutines are made by `wake`."""

    def wake(self, calls: int) -> None:
        """Wake idle coroutines, and make more up to the limit."""
        if self._stopping:
            return
        while calls > 0 and self._idle:
            self._idle.popleft().set_result(True)
            calls -= 1
        for _ in range(min(calls, self._source.limit - len(self._pullers))):
            puller = asyncio.get_running_loop().create_task(self._run())
            self._pullers.add(puller)
            puller.add_done_callback(self._pullers.discard)

    def end_partition(self, topic: str, partition: int) -> None:
        """Tell a pipeline."""
        if isinstance(self._handler, ScopedHandler):
            self._handler.end_partition(topic, partition)

    @property
    def statistics(self) -> WorkerStatistics:
        """See Worker."""
        return WorkerStatistics(len(self._pullers), self._source.limit)

    async def stop(self) -> None:
        """Cancel every coroutine and wait for their ends."""
        self._stopping = True
        for puller in self._pullers:
            puller.cancel()
        await asyncio.gather(*self._pullers, return_exceptions=True)

    async def _run(self) -> None:
        try:
            await self._pull()
        finally:
            if isinstance(self._handler, ScopedHandler):
                self._handler.end_worker()

    async def _pull(self) -> None:
        source, handler = self._source, self._handler
        while not self._stopping:
            call = source.take()
            if call is None:
                if len(self._pullers) > source.limit:
                    return
                await self._wait()
                continue
            try:
                returned = await handler(call.argument, source.context(call))
            except asyncio.CancelledError as error:
                if self._stopping:
                    raise
                source.failed(call, error)
            except BaseException as error:  # noqa: BLE001 - a handler may raise anything, SystemExit included
                source.failed(call, error)
            else:
                source.succeeded(call, returned)
            self._straight += 1
            if self._straight >= _STRAIGHT_MAX:
                if self._straight == _STRAIGHT_MAX:
                    asyncio.get_running_loop().call_soon(self._begin_turn)
                await asyncio.sleep(0)

    def _begin_turn(self) -> None:
        self._straight = 0

    async def _wait(self) -> None:
        woken: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        # Last in, first out would leave some coroutines cold; first in, first out spreads nothing that matters.
        self._idle.append(woken)
        await woken
