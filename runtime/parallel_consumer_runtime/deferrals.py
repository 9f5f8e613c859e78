"""Records that their handler completes later: one completion each, which counts once and is reaped when it does not come."""

import asyncio
import threading
from collections.abc import Callable

from parallel_consumer_runtime.handlers import Completion, Context, Returned


class Deferral:
    """One deferred record, from `context.defer()` to its end.

    Threads: `settle` comes from any; everything else is the event loop's.
    """

    __slots__ = ("_came", "_ended", "_lock", "_loop", "_report", "outcome", "timer")

    def __init__(self, loop: asyncio.AbstractEventLoop, came: "Callable[[Deferral], None]") -> None:
        self._loop = loop
        self._came = came
        self._lock = threading.Lock()
        self._ended = False
        self.outcome: tuple[Returned, BaseException | None] | None = None
        """What the completion said, once it was called."""
        self.timer: asyncio.TimerHandle | None = None
        """Runs once the handler has returned."""

    def settle(self, returned: Returned, error: BaseException | None) -> bool:
        """Take the outcome. Return whether it was the first."""
        if not self.end():
            return False
        self.outcome = returned, error
        try:
            self._loop.call_soon_threadsafe(self._came, self)
        except RuntimeError:  # the loop is closed: the process ends, and the record is handled again
            return False
        return True

    def end(self) -> bool:
        """Let no later completion count. Return False when there was an end before."""
        with self._lock:
            ended, self._ended = self._ended, True
        return not ended


class DeferringContext(Context):
    """A context of one call, whose record may be completed later."""

    __slots__ = ("_came", "_late", "_loop", "deferral")

    def __init__(
        self,
        member: str,
        attempt: int,
        loop: asyncio.AbstractEventLoop,
        came: Callable[[Deferral], None],
        late: Callable[[], None],
    ) -> None:
        super().__init__(member, attempt)
        self._loop = loop
        self._came = came
        self._late = late
        self.deferral: Deferral | None = None
        """Set when the handler deferred."""

    def defer(self) -> Completion:
        """See Context."""
        if self.deferral is not None:
            msg = "context.defer() was called before: one call has one completion"
            raise RuntimeError(msg)
        deferral = self.deferral = Deferral(self._loop, self._came)

        def settle(returned: Returned, error: BaseException | None) -> bool:
            first = deferral.settle(returned, error)
            if not first:
                self._late()
            return first

        return Completion(settle)
