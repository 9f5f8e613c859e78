"""A pipeline for processes: each instance notes its making and its closing in a file that the environment names."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from parallel_consumer_runtime.handlers import Context, Record, Returned
from parallel_consumer_runtime.pipeline import Scope, ThreadPipeline

NOTES_ENV = "PCONSUMER_TEST_NOTES"


class Noted:
    """Forwards every record.

    Args:
        scope: what there is one instance for.
    """

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._note("made")

    def process(self, record: Record, _context: Context, forward: Callable[[Record], Returned]) -> Returned:
        """Let the next one have it."""
        return forward(record)

    def close(self) -> None:
        """Say so."""
        self._note("closed")

    def _note(self, what: str) -> None:
        fd = os.open(Path(os.environ[NOTES_ENV]), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(fd, f"{what} {self._scope.name} {os.getpid()}.{id(self)}\n".encode())
        finally:
            os.close(fd)


pipeline = ThreadPipeline()
for _scope in Scope:
    pipeline.add(partial(Noted, _scope), _scope)
