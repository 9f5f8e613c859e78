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
        before = self._totals()
        while True:
            await asyncio.sleep(INTERVAL_S)
            now = self._totals()
            calls, attempts, failed, busy_s = (one - other for one, other in zip(now, before, strict=True))
            before = now
            saturated = self._engine.statistics().ready > 0 and self._engine.in_flight >= self._engine.limit
            latency_s = busy_s / calls if calls else 0.0
            sample = Sample(int(max(0, attempts - failed)), int(failed), latency_s, saturated)
            self._engine.limit = self._limiter.update(sample)
            self._dispatcher.wake()

    def _totals(self) -> tuple[float, float, float, float]:
        """Return calls, attempts, failed attempts, and seconds spent, since the process began."""
        counters = self._dispatcher.counters
        return counters.calls, counters.calls + counters.together, counters.failures, counters.busy_s
