"""What a run prints, and what it writes into docs/reliability.md: the same lines, so that page and run cannot differ."""

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.support.simulation.running import Found, Outcome
from tests.support.simulation.sometimes import EVENTS, STATES

ROOT = Path(__file__).parent.parent.parent.parent
PAGE = ROOT / "docs" / "reliability.md"
ENOUGH = 1000
HEAD = """# Reliability

What was broken on purpose, and what held. Each part is written by the command that it names.
"""
ABOUT_RUN = """The real core and codec between a fake broker, a fake clock and a fake executor: for each seed a safety phase of
random steps under a random set of faults, then a liveness phase without them, in which everything must become complete and
committed. Written by `python -m tests.support.simulation run --write`.
"""
ABOUT_PLANTED = """Small changes of the real code, each put in place for one search; what is not found here, the simulation
would not find in earnest. Written by `python -m tests.support.simulation planted --write`.
"""


def summary(outcome: Outcome) -> str:
    """Return one line."""
    rate = outcome.seeds / outcome.elapsed_s if outcome.elapsed_s else 0.0
    return (
        f"{outcome.seeds:,} seeds of {outcome.steps} steps in {outcome.elapsed_s:.0f} s ({rate:.0f} seeds/s): "
        f"{len(outcome.failures)} failed; longest liveness phase {outcome.rounds_max} rounds; traces {outcome.fingerprint}"
    )


def seen(outcome: Outcome) -> list[str]:
    """Return a table of events and rare states, as Markdown."""
    rows = [("event", name) for name in EVENTS] + [("state", name) for name in STATES]
    lines = [f"| {kind} | {name} | {outcome.counts[name]:,} |" for kind, name in rows]
    return ["| | what happened | times |", "|---|---|---:|", *lines]


def too_rare(outcome: Outcome, least: int = ENOUGH) -> list[str]:
    """Return what happened less often than is needed to believe in it."""
    return [name for name, times in outcome.counts.items() if times < least]


def found_table(found: Sequence[Found]) -> list[str]:
    """Return a table of planted bugs, as Markdown."""
    lines = [
        f"| {each.bug} | {'not found' if each.seed is None else each.seed + 1} | {each.what.split(':')[0]} |"
        for each in found
    ]
    return ["| planted bug | seeds to find it | shows as |", "|---|---:|---|", *lines]


def write(title: str, about: str, lines: Sequence[str]) -> None:
    """Replace one part of the page; the other parts stay as they are."""
    page = PAGE.read_text() if PAGE.exists() else HEAD
    part = "\n".join([f"## {title}", "", about, *lines, ""])
    pattern = re.compile(rf"^## {re.escape(title)}\n.*?(?=^## |\Z)", re.DOTALL | re.MULTILINE)
    page = pattern.sub(lambda _: f"{part}\n", page) if pattern.search(page) else f"{page.rstrip()}\n\n{part}"
    PAGE.write_text(page.rstrip() + "\n")


def commit() -> str:
    """Return the commit that is checked out."""
    command = ["git", "rev-parse", "--short=12", "HEAD"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=30).stdout.strip()
