"""`python -m tests.support.mutation [--children N] [--keep FOLDER]`: runs mutmut over the core and writes docs/mutation.md.

Fails when fewer than 85 of 100 changes were noticed. A kept folder is gone on with, as long as the core is the same: what no
test noticed there is tried again with the tests of now.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.support.mutation import report, results, tree

SCORE_MIN = 0.85
_RUN_MAX_S = 6 * 3600


def main() -> int:
    """Run it. Return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--children", type=int, default=1, help="mutants at a time")
    parser.add_argument("--keep", type=Path, help="work in this folder and leave it, to look at mutants")
    arguments = parser.parse_args()
    if arguments.keep is not None:
        return _run(arguments.keep, arguments.children)
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        return _run(Path(folder) / "copy", arguments.children)


def _run(folder: Path, children: int) -> int:
    notes, at, elapsed_s = folder / "notes.json", report.commit(), 0.0
    again: list[str] = []
    if notes.exists():
        tree.renew(folder)
        elapsed_s = json.loads(notes.read_text())
        again = results.unnoticed(folder)
    else:
        folder.mkdir(parents=True)
        tree.make(folder)
    began = time.monotonic()
    try:
        subprocess.run(
            [results.MUTMUT, "run", "--max-children", str(children), *again],
            cwd=folder,
            check=True,
            timeout=_RUN_MAX_S,
        )
    finally:
        elapsed_s += time.monotonic() - began
        notes.write_text(json.dumps(elapsed_s))
    found = results.read(folder, elapsed_s)
    page = report.page(found, at, report.reasons())
    report.PAGE.write_text(page)
    unexplained = page.count(report.UNEXPLAINED)
    print(
        f"\n{found.score:.1%} of {found.counts.total():,} changes were noticed; {unexplained} survivors not explained"
    )
    return 0 if found.score >= SCORE_MIN else 1


if __name__ == "__main__":
    sys.exit(main())
