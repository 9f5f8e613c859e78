"""Moves an engine's limit between min and max by what handler calls show; for members and for replays alike.

Lives on the event loop's thread.
"""

import asyncio

from parallel_consumer_runtime.core import AdaptiveLimiter, Engine, Sample
from parallel_consumer_runtime.dispatch import Dispatcher
from parallel_consumer_runtime.settings import ConcurrencySpec

INTERVAL_S = 1.0


class Adaption:
    """Keeps the limit of one engine.

    Args:
        engine: whose limit it is.
        dispatcher: counts calls, and hands out more when the limit grew.
        concurrency: the first bounds.
    """

    def __init__(self, engine: Engine, dispatcher: Dispatcher, concurrency: ConcurrencySpec) -> None:
        self._engine = engine
        self._dispatcher = dispatcher
        self._limiter = AdaptiveLimiter(*concurrency.bounds)
        engine.limit = self._limiter.limit

    def bound(self, concurrency: ConcurrencySpec) -> None:
        """Take new bounds, at once; what was learnt stays."""
        self._limiter.bound(*concurrency.bounds)
        self._engine.limit = self._limiter.limit

    async def run(self) -> None:
        """Learn from one interval after the other, until cancelled."""
        counters = self._dispatcher.counters
        calls, failures, busy_s = counters.calls, counters.failures, counters.busy_s
        while True:
            await asyncio.sleep(INTERVAL_S)
            ended, failed, busy = counters.calls - calls, counters.failures - failures, counters.busy_s - busy_s
            calls, failures, busy_s = counters.calls, counters.failures, counters.busy_s
            saturated = self._engine.statistics().ready > 0 and self._engine.in_flight >= self._engine.limit
            latency_s = busy / ended if ended else 0.0
            self._engine.limit = self._limiter.update(Sample(max(0, ended - failed), failed, latency_s, saturated))
            self._dispatcher.wake()
