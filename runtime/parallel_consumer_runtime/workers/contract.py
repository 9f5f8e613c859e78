"""What a worker asks of its source of tasks, and what is asked of a worker. One conformance suite holds them all."""

from typing import Protocol

from parallel_consumer_runtime.core import Task
from parallel_consumer_runtime.handlers import Context, Returned


class Source(Protocol):
    """Gives tasks out and takes outcomes back. Every method is called on the event loop's thread; none blocks."""

    @property
    def limit(self) -> int:
        """How many tasks may be with handlers at once; may change at any time."""
        ...

    def take(self) -> Task | None:
        """Return the next task, None when none may run now. A taken task must be settled exactly once."""
        ...

    def context(self, task: Task) -> Context:
        """Return what the handler may know of this call."""
        ...

    def succeeded(self, task: Task, returned: Returned) -> None:
        """The handler returned."""
        ...

    def failed(self, task: Task, error: BaseException) -> None:
        """The handler raised, whatever it was."""
        ...

    def returned(self, task: Task) -> None:
        """The handler was never called: the task may be taken again at once, and no attempt is counted."""
        ...


class Worker(Protocol):
    """Runs handlers. Made on the event loop's thread, which also calls every method."""

    def start(self) -> None:
        """Be ready to run. Called once."""
        ...

    def wake(self, tasks: int) -> None:
        """So many tasks may be taken now. Success does not imply that they were: the source decides at `take`."""
        ...

    async def stop(self) -> None:
        """Take nothing more, abandon what runs, free everything. Twice is fine."""
        ...
