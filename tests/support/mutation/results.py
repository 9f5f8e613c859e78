"""What became of the mutants, read from mutmut's own commands."""

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

MUTMUT = str(Path(sys.executable).parent / "mutmut")
_NAME = re.compile(r"core\.(?P<module>\w+)\.x(?:ǁ(?P<owner>\w+)ǁ|_)(?P<function>\w+)__mutmut_\d+$")
NOTICED = ("killed", "timeout", "segfault")
"""A test failed, ran for ever, or the process died."""


class Survivor(NamedTuple):
    """A change that no test noticed."""

    name: str
    """mutmut's."""
    function: str
    """As `engine.Engine.take`."""
    before: str
    after: str
    status: str


class Results(NamedTuple):
    """What one run showed."""

    counts: Counter[str]
    """Mutants by mutmut's word for what became of them."""
    survivors: list[Survivor]
    elapsed_s: float

    @property
    def score(self) -> float:
        """The part of all mutants that was noticed."""
        return sum(self.counts[status] for status in NOTICED) / self.counts.total()


def read(folder: Path, elapsed_s: float) -> Results:
    """Return what the run in this folder showed."""
    statuses = dict(_statuses(folder))
    survivors = [_survivor(folder, name, status) for name, status in statuses.items() if status not in NOTICED]
    return Results(Counter(statuses.values()), sorted(survivors, key=lambda each: each[1:]), elapsed_s)


def unnoticed(folder: Path) -> list[str]:
    """Return the names of the mutants that no test noticed so far, or that were not tried yet."""
    return [name for name, status in _statuses(folder) if status not in NOTICED]


def _statuses(folder: Path) -> Iterator[tuple[str, str]]:
    for line in _mutmut(folder, "results", "--all", "true").splitlines():
        name, separator, status = line.strip().partition(": ")
        if separator and "__mutmut_" in name:
            yield name, status


def _survivor(folder: Path, name: str, status: str) -> Survivor:
    found = _NAME.search(name)
    assert found, name
    lines = _mutmut(folder, "show", name).splitlines()
    before, after = (
        " ".join(line[1:].strip() for line in lines if line.startswith(sign) and not line.startswith(sign * 3))
        for sign in "-+"
    )
    function = ".".join(filter(None, found.group("module", "owner", "function")))
    return Survivor(name, function, before, after, status)


def _mutmut(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        [MUTMUT, *arguments], cwd=folder, check=True, capture_output=True, text=True, timeout=120
    ).stdout
