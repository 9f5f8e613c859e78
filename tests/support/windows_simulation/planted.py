"""Bugs that are put in on purpose: what the simulation does not find here it would not find in earnest."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

from parallel_consumer_operator.windows import deciding
from parallel_consumer_operator.windows.model import Ledger, Run, Sample
from tests.support.windows_simulation import world
from tests.support.windows_simulation.cluster import Cluster

_adopted = deciding._adopted  # pyright: ignore[reportPrivateUsage]
_begin = Cluster.begin
_keep = Cluster.keep
_sample = world.World.sample
_asked = world.World.asked


def _anybody_begins(cluster: Cluster, name: str) -> bool:
    """Start a run whatever the ledger says."""
    run = cluster.runs[name]
    if run.started:
        return False
    cluster.runs[name] = replace(run, started=True)
    cluster.began.append(run.window)
    return True


def _last_writer_wins(cluster: Cluster, ledger: Ledger, version: int | None) -> None:
    del version
    _keep(cluster, ledger, None if cluster.ledger is None else cluster.ledger.version)


def _knows_no_run(ledger: Ledger, runs: Sequence[Run]) -> None:
    del ledger, runs


def _ends_before_the_pods(self: world.World, asked_at: float) -> Sample:
    """The broker's offsets are of before the pods were read."""
    sample = _sample(self, asked_at)
    self.__dict__["stale"] = self.__dict__.get("next_stale", _asked(self, sample).broker)
    self.__dict__["next_stale"] = _asked(self, sample).broker
    return sample


def _stale_ends(self: world.World, sample: Sample) -> Sample:
    return replace(sample, broker=self.__dict__["stale"])


def _forgets_the_last(entry: Any, ledger: Ledger, runs: Sequence[Run]) -> list[Run]:
    del entry
    return [run for run in runs if run.finished and (ledger.open is None or run.uid != ledger.open.uid)]


def _fails_and_goes_on(ledger: Ledger, run: Run) -> Ledger:
    known = _adopted(ledger, run)
    return known.model_copy(update={"open": None}) if run.window.retry else known


class Planted(NamedTuple):
    """One bug: what is replaced, and by what."""

    name: str
    places: tuple[tuple[Any, str, Any], ...]


PLANTED = (
    Planted("runs begin whatever the ledger says", ((Cluster, "begin", _anybody_begins),)),
    Planted("the ledger's last writer wins", ((Cluster, "keep", _last_writer_wins),)),
    Planted("runs that the ledger does not tell of are not looked for", ((deciding, "_unknown", _knows_no_run),)),
    Planted(
        "the log's ends are read before the pods",
        ((world.World, "sample", _ends_before_the_pods), (world.World, "asked", _stale_ends)),
    ),
    Planted("the last window's run is not kept", ((deciding, "_beyond_limits", _forgets_the_last),)),
    Planted("a window that failed twice counts as done", ((deciding, "_adopted", _fails_and_goes_on),)),
)


@contextmanager
def planted(bug: Planted) -> Generator[None]:
    """Put a bug in for the block."""
    before = [(place, name, place.__dict__[name]) for place, name, _ in bug.places]
    try:
        for place, name, instead in bug.places:
            setattr(place, name, instead)
        yield
    finally:
        for place, name, was in before:
            setattr(place, name, was)
