"""A work queue of keys: each key waits once, is worked on by one worker at a time, and fails ever more slowly.

Invariants: a key added while it is being worked on is handed out once more afterwards, never beside itself; a key added
twice before it is handed out is handed out once. One event loop owns the queue; other threads use `call_soon_threadsafe`.
"""

import asyncio
from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


class QueueClosedError(Exception):
    """The queue was closed and holds nothing more."""


class WorkQueue(Generic[Key]):
    """Deduplicating, delaying, rate-limiting queue.

    Bounded by the number of distinct keys, which is the number of objects.

    Args:
        backoff_first_s: wait after a key's first failure; doubled for each further one.
        backoff_max_s: the longest wait after a failure.
    """

    def __init__(self, *, backoff_first_s: float = 0.1, backoff_max_s: float = 60.0) -> None:
        self._backoff_first_s = backoff_first_s
        self._backoff_max_s = backoff_max_s
        self._ready: deque[Key] = deque()
        self._dirty: set[Key] = set()
        self._processing: set[Key] = set()
        self._failures: dict[Key, int] = {}
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._changed = asyncio.Event()
        self._closed = False

    def __len__(self) -> int:
        """Keys that may be handed out now."""
        return len(self._ready)

    @property
    def processing(self) -> int:
        """Keys being worked on."""
        return len(self._processing)

    def add(self, key: Key) -> None:
        """Hand out the key as soon as possible, unless it waits already."""
        if self._closed or key in self._dirty:
            return
        if (timer := self._timers.pop(key, None)) is not None:
            timer.cancel()
        self._dirty.add(key)
        if key not in self._processing:
            self._ready.append(key)
            self._changed.set()

    def add_unless_failing(self, key: Key) -> None:
        """Add the key for what is no reason to cut its backoff short: a key that failed last time comes when it is due."""
        if key not in self._failures:
            self.add(key)

    def add_after(self, key: Key, delay_s: float) -> None:
        """Add the key after a while; of several delays for one key the shortest counts."""
        if self._closed or key in self._dirty:
            return
        if delay_s <= 0:
            self.add(key)
            return
        loop = asyncio.get_running_loop()
        due = loop.time() + delay_s
        if (timer := self._timers.get(key)) is not None:
            if timer.when() <= due:
                return
            timer.cancel()
        self._timers[key] = loop.call_at(due, self._add_due, key)

    def add_failed(self, key: Key) -> float:
        """Add the key after its backoff. Return the wait in seconds."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        # The exponent is capped so that a key that failed for days does not compute 2**100000.
        delay_s = min(self._backoff_first_s * 2.0 ** min(failures, 32), self._backoff_max_s)
        self.add_after(key, delay_s)
        return delay_s

    def forget(self, key: Key) -> None:
        """Clear the key's failures: its next failure waits shortest again."""
        self._failures.pop(key, None)

    async def get(self) -> Key:
        """Return the next key; the caller must call `done` for it.

        Raises:
            QueueClosedError: the queue was closed.
        """
        while not self._ready:
            if self._closed:
                raise QueueClosedError
            self._changed.clear()
            await self._changed.wait()
        key = self._ready.popleft()
        self._dirty.discard(key)
        self._processing.add(key)
        return key

    def done(self, key: Key) -> None:
        """Say that the work on a key ended; if it was added meanwhile, it is handed out again."""
        self._processing.discard(key)
        if key in self._dirty and not self._closed:
            self._ready.append(key)
            self._changed.set()

    def close(self) -> None:
        """Hand out nothing more; waiting workers get QueueClosedError."""
        self._closed = True
        self._ready.clear()
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._changed.set()

    def _add_due(self, key: Key) -> None:
        self._timers.pop(key, None)
        self.add(key)
