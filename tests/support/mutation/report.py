"""Writes docs/mutation.md: the score, and each survivor with the reason why it does no harm.

The reasons are in docs/mutation.toml, by function and changed line, so that they outlive the next run.
"""

import subprocess
import tomllib
from collections.abc import Mapping
from pathlib import Path

from tests.support.mutation.results import NOTICED, Results, Survivor

ROOT = Path(__file__).parent.parent.parent.parent
PAGE = ROOT / "docs" / "mutation.md"
REASONS = ROOT / "docs" / "mutation.toml"
UNEXPLAINED = "**not explained**"


def commit() -> str:
    """Return the commit, and whether the core or its tests differ from it."""
    git = ["git", "-C", str(ROOT)]
    short = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], check=True, capture_output=True, text=True).stdout
    paths = ["runtime/parallel_consumer_runtime/core", "tests/runtime/core"]
    changed = subprocess.run([*git, "status", "--porcelain", "--", *paths], check=True, capture_output=True, text=True)
    return short.strip() + (" with changes" if changed.stdout else "")


def reasons() -> dict[tuple[str, str], str]:
    """Return why survivors do no harm, by function and changed line."""
    groups = tomllib.loads(REASONS.read_text())["harmless"]
    return {
        (function, line): group["reason"]
        for group in groups
        for function, lines in group["changes"].items()
        for line in lines
    }


def page(results: Results, at: str, known: Mapping[tuple[str, str], str]) -> str:
    """Return the page."""
    counts = results.counts
    others = {status: number for status, number in counts.items() if status not in {*NOTICED, "survived"}}
    rows = [
        ("mutants", counts.total()),
        ("killed by a test", counts["killed"]),
        ("ended by a timeout", counts["timeout"]),
        *([("ended with their process", counts["segfault"])] if counts["segfault"] else []),
        ("survived", counts["survived"]),
        *sorted(others.items()),
    ]
    table = "\n".join(f"| {what} | {number:,} |" for what, number in rows)
    listed = "\n".join(_row(survivor, known) for survivor in results.survivors)
    return f"""# Mutation testing of the core

Small changes are made to `runtime/parallel_consumer_runtime/core/`, one at a time, and the tests are to notice each. Written by
`make mutation`: mutmut, in a copy of the tree, with the tests of `tests/runtime/core` and a short simulation. It is no part of
`make test`, because it takes long.

Commit {at}: **{results.score:.1%}** of {counts.total():,} changes were noticed, in {results.elapsed_s:,.0f} s.

| | |
|---|---:|
{table}

## What no test noticed

| function | was | became | why it does no harm |
|---|---|---|---|
{listed}
"""


def _row(survivor: Survivor, known: Mapping[tuple[str, str], str]) -> str:
    reason = known.get((survivor.function, survivor.after), UNEXPLAINED)
    if survivor.status != "survived":
        reason = f"{survivor.status}; {reason}"
    cells = (f"`{survivor.function}`", _code(survivor.before), _code(survivor.after), reason)
    return f"| {' | '.join(cells)} |"


def _code(line: str) -> str:
    return f"`{line.replace('|', chr(92) + '|')}`" if line else "nothing"
