"""What so many calls at a time allow on this machine, now: coroutines that await the example's call and do nothing else.

`python control.py CONCURRENCY` prints Unix time and calls so far, ten times a second, until nobody reads it.
"""

import asyncio
import ctypes
import sys
import time
from pathlib import Path

import uvloop

sys.path.insert(0, str(Path(__file__).parent))

from flights.handlers import CALL_S

_SET_TIMER_SLACK, _SLACK_NS = 29, 1_000


class Control:
    """Counts calls."""

    def __init__(self) -> None:
        self.calls = 0

    async def call(self) -> None:
        """Call, one after the other, without end."""
        while True:
            await asyncio.sleep(CALL_S)
            self.calls += 1

    async def run(self, concurrency: int) -> None:
        """Call so many at a time, and tell."""
        callers = [asyncio.create_task(self.call()) for _ in range(concurrency)]
        try:
            while True:
                await asyncio.sleep(0.1)
                print(time.time(), self.calls, flush=True)
        finally:
            for caller in callers:
                caller.cancel()


if __name__ == "__main__":
    # As the runtime does for itself: Linux lets timers be 50 µs late otherwise.
    ctypes.CDLL(None).prctl(_SET_TIMER_SLACK, _SLACK_NS, 0, 0, 0)
    try:
        uvloop.run(Control().run(int(sys.argv[1])))
    except BrokenPipeError:
        sys.stderr.close()  # the demo has ended
