"""What the API server keeps: ledgers with versions, runs by name; and who runs them, when the ledger names them."""

from dataclasses import dataclass, replace

from parallel_consumer_operator.windows.model import Ledger, Run
from parallel_consumer_runtime.settings.window import WindowSpec


class ConflictError(Exception):
    """Somebody else wrote it meanwhile."""


@dataclass(frozen=True)
class Kept:
    """A ledger and its version."""

    text: str
    version: int


class Cluster:
    """Objects as the API server holds them."""

    def __init__(self) -> None:
        self.ledger: Kept | None = None
        self.runs: dict[str, Run] = {}
        self.began: list[WindowSpec] = []
        """Windows whose runs began, in order; a run may succeed without anybody's seeing it."""
        self.done: list[WindowSpec] = []
        """Windows whose runs succeeded, in order."""
        self._version = 0
        self._uids = 0

    def keep(self, ledger: Ledger, version: int | None) -> None:
        """Write the ledger over a version of it; None: there was none."""
        if (None if self.ledger is None else self.ledger.version) != version:
            raise ConflictError
        self._version += 1
        self.ledger = Kept(ledger.write(), self._version)

    def create(self, name: str, window: WindowSpec, now: float) -> None:
        """Create a run; its name may be taken."""
        if name in self.runs:
            raise ConflictError
        self._uids += 1
        self.runs[name] = Run(name, f"uid-{self._uids}", window, now)

    def delete(self, run: Run) -> None:
        """Delete a run if it is still the same."""
        if (found := self.runs.get(run.name)) is not None and found.uid == run.uid:
            del self.runs[run.name]

    def begin(self, name: str) -> bool:
        """Start a run if the ledger names it. Return whether it started: `reconcile/sparkjob.py` restated."""
        run = self.runs[name]
        if run.started or self.ledger is None:
            return False
        opened = Ledger.read(self.ledger.text).open
        if opened is None or opened.uid != run.uid:
            return False
        self.runs[name] = replace(run, started=True)
        self.began.append(run.window)
        return True

    def end(self, name: str, now: float, *, succeeded: bool) -> None:
        """End a run that began."""
        run = self.runs[name]
        self.runs[name] = replace(run, succeeded=succeeded, failed=not succeeded, finished_at=now, words="it failed")
        if succeeded:
            self.done.append(run.window)
