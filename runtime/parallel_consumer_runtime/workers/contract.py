"""What a worker asks of its source of calls, and what is asked of a worker. One conformance suite holds them all."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from parallel_consumer_runtime.core import Batch, Task
from parallel_consumer_runtime.handlers import Context

Call = Task | Batch
"""What one call of the handler is about; its `argument` is what the handler gets."""


def tasks_of(call: Call) -> Sequence[Task]:
    """Return the tasks that a call is about, at least one."""
    return call.tasks if isinstance(call, Batch) else (call,)


class WorkerStatistics(NamedTuple):
    """What a worker runs handlers with."""

    size: int
    """Coroutines, threads or processes that there are now."""
    size_max: int
    """How many there may be now; those that are above a lowered bound go when they are idle."""
    restarts: int = 0
    """Processes that ended by themselves, or could not be started, and were replaced."""
    crashes: int = 0
    """Those of them whose handler was at a record."""


class Source(Protocol):
    """Gives calls out and takes outcomes back. Every method is called on the event loop's thread; none blocks."""

    @property
    def limit(self) -> int:
        """How many calls may be with handlers at once; may change at any time."""
        ...

    def take(self) -> Call | None:
        """Return the next call, None when none may run now. A taken call must be settled exactly once."""
        ...

    def context(self, call: Call) -> Context:
        """Return what the handler may know of this call."""
        ...

    def succeeded(self, call: Call, returned: object) -> None:
        """The handler returned."""
        ...

    def failed(self, call: Call, error: BaseException) -> None:
        """The handler raised, whatever it was."""
        ...

    def returned(self, call: Call) -> None:
        """The handler was never called: its records may be taken again at once, and no attempt is counted."""
        ...


class Worker(Protocol):
    """Runs handlers. Made on the event loop's thread, which also calls every method."""

    def start(self) -> None:
        """Be ready to run. Called once."""
        ...

    def wake(self, calls: int) -> None:
        """So many calls may be taken now. Success does not imply that they were: the source decides at `take`."""
        ...

    def end_partition(self, topic: str, partition: int) -> None:
        """A partition is no longer ours: its processors end, once nothing uses them."""
        ...

    @property
    def statistics(self) -> WorkerStatistics:
        """One consistent view of the counters."""
        ...

    async def stop(self) -> None:
        """Take nothing more, abandon what runs, free everything. Twice is fine."""
        ...
