"""One operator process in the simulation: reads, decides, acts, call by call; it dies by being dropped."""

from collections.abc import Generator
from typing import TYPE_CHECKING

from parallel_consumer_operator.windows.deciding import decide
from parallel_consumer_operator.windows.model import Ask, Create, Delete, Keep, Ledger
from parallel_consumer_runtime.settings.window import WindowSpec
from tests.support.windows_simulation.cluster import ConflictError

if TYPE_CHECKING:
    from tests.support.windows_simulation.world import World


class Operator:
    """Goes round by `step`, which makes one call and returns: the world goes on between any two."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self.asked_at = -1e9
        self._round: Generator[None] = self._reconcile()

    def step(self) -> None:
        """Make the next call."""
        try:
            next(self._round)
        except StopIteration:
            self._round = self._reconcile()
        except ConflictError:
            self.world.note("write refused: somebody else was faster")
            self._round = self._reconcile()

    def _reconcile(self) -> Generator[None]:
        """One round: `reconcile/windows.py` restated."""
        world = self.world
        kept = world.cluster.ledger
        yield
        runs = list(world.cluster.runs.values())
        yield
        sample = world.sample(self.asked_at)
        yield
        ledger = None if kept is None else Ledger.read(kept.text)
        decision = decide(world.entry, ledger, runs, sample)
        if isinstance(decision, Ask):
            world.note("broker asked")
            self.asked_at = world.now
            sample = world.asked(sample)
            yield
            decision = decide(world.entry, ledger, runs, sample)
        if isinstance(decision, Keep):
            world.cluster.keep(decision.ledger, None if kept is None else kept.version)
            world.kept(ledger, decision.ledger)
        elif isinstance(decision, Create):
            world.cluster.create(name_of(decision.window), decision.window, world.now)
            world.cut(sample, decision.window)
        elif isinstance(decision, Delete):
            for run in decision.runs:
                world.deleted(run)
                world.cluster.delete(run)
                yield
        else:
            world.waited(decision)


def name_of(window: WindowSpec) -> str:
    """Return a run's name: number and retry, never what it holds."""
    return f"{window.entry}-{window.sequence}-{window.retry}"
