"""The command: `python -m tests.support.metadata_fuzz [--seconds 60 | --inputs 50000000] [--write]`.

An input that breaks something is printed and appended to `kept.txt`, which the unit tier reads again for ever.
"""

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from tests.support.metadata_fuzz.inputs import case
from tests.support.metadata_fuzz.oracle import TIME_MAX_S, BrokenError, Tally, check
from tests.support.metadata_fuzz.seeds import KEPT, keep, seeds
from tests.support.simulation.report import ROOT, commit, write

SECONDS = 60
TELL_EVERY_S = 30.0
JOBS = 2
SEED_MAX = 2**31 - 1
START_MAX_S = 120.0
"""A process may end so much later than it was told to: imports, the seeds, a slow machine."""
TITLE = "Commit metadata"
RELEASE_TITLE = "Commit metadata, before a release"
RELEASE_INPUTS = 50_000_000
"""From so many inputs on, a run has its own part of the page, which no short run replaces."""
ABOUT = """Every input is metadata, the offset it was committed at and the end of its log, from bytes that libFuzzer mutates towards
new branches of the codec. A second reader, slow and written from the format alone, must agree on each: the same map, or
refused. So nothing is called complete that the bytes do not, by the codec or by a ledger made of its map; nothing but the
typed error is raised; and reading takes at most 5 ms of processor time (the best of a few repeats). Written by
`python -m tests.support.metadata_fuzz --write`; every run takes 60 s, a release 50,000,000 inputs.
"""


class Figures(NamedTuple):
    """What all processes came to."""

    inputs: int
    outcomes: Counter[str]
    slowest_s: float
    elapsed_s: float

    def line(self) -> str:
        """Return one line."""
        rate = self.inputs / self.elapsed_s if self.elapsed_s else 0.0
        return (
            f"{self.inputs:,} inputs in {self.elapsed_s:.0f} s ({rate:,.0f}/s, {JOBS} processes); "
            f"slowest {self.slowest_s * 1000:.2f} ms of {TIME_MAX_S * 1000:.0f} ms"
        )


def main() -> int:
    """Run, tell, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.metadata_fuzz", description=__doc__)
    parser.add_argument("--seconds", type=int, default=0, help="end after so long (60 when no count is given)")
    parser.add_argument("--inputs", type=int, default=0, help="end after so many inputs")
    parser.add_argument("--seed", type=int, default=time.time_ns() % SEED_MAX, help="where the mutations begin")
    parser.add_argument("--write", action="store_true", help="write the figures into docs/reliability.md")
    options = parser.parse_args()
    if sys.platform != "linux" or platform.machine() != "x86_64":
        print("NOT FUZZED: atheris runs on Linux on x86_64 only; the unit tier reads the kept inputs")
        return 0
    seconds = options.seconds or (0 if options.inputs else SECONDS)
    of = commit()  # before the run: it may take long, and the tree goes on
    print(f"fuzzing commit metadata, seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        good, figures = _run(Path(folder), options.inputs or sys.maxsize, seconds, options.seed)
    lines = [figures.line(), "", *_table(figures)]
    print("\n".join(lines))
    if good and options.write:
        write(
            TITLE if figures.inputs < RELEASE_INPUTS else RELEASE_TITLE,
            ABOUT,
            [f"{figures.line()}; 0 broke anything; commit {of}.", *lines[1:]],
        )
    return 0 if good else 1


def _run(folder: Path, inputs: int, seconds: int, seed: int) -> tuple[bool, Figures]:
    corpus, broken = folder / "corpus", folder / "broken"
    corpus.mkdir()
    broken.mkdir()
    for number, content in enumerate(seeds()):
        (corpus / f"seed-{number}").write_bytes(content)
    told = [folder / f"figures-{job}" for job in range(JOBS)]
    began = time.monotonic()
    running = [
        subprocess.Popen(
            [
                *(sys.executable, "-m", "tests.support.metadata_fuzz.child", str(corpus), str(path), str(broken)),
                *(str(-(-inputs // JOBS)), str(seconds), str((seed + job) % SEED_MAX + 1)),
            ],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=(folder / f"log-{job}").open("wb"),
        )
        for job, path in enumerate(told)
    ]
    try:
        good = _wait(running, told, began, seconds)
    finally:
        for process in running:
            if process.poll() is None:
                process.kill()
                process.wait(30)
    figures = _figures(told, time.monotonic() - began)
    if not good:
        for log in sorted(folder.glob("log-*")):
            print(log.read_text(errors="replace")[-4_000:])
        _keep(broken)
    return good and figures.inputs > 0, figures


def _wait(running: list[subprocess.Popen[bytes]], told: list[Path], began: float, seconds: int) -> bool:
    """Wait until all ended well, one did not, or one is overdue."""
    next_s = TELL_EVERY_S
    while any(process.poll() is None for process in running):
        if any(process.poll() for process in running):
            return False
        elapsed_s = time.monotonic() - began
        if seconds and elapsed_s > seconds + START_MAX_S:
            print("a process did not end in time")
            return False
        if elapsed_s >= next_s:
            next_s += TELL_EVERY_S
            print(_figures(told, elapsed_s).line(), flush=True)
        time.sleep(0.2)
    return not any(process.returncode for process in running)


def _figures(told: list[Path], elapsed_s: float) -> Figures:
    inputs, outcomes, slowest_s = 0, Counter[str](), 0.0
    for path in told:
        if path.exists():
            figures = json.loads(path.read_text())
            inputs += figures["inputs"]
            outcomes.update(figures["outcomes"])
            slowest_s = max(slowest_s, figures["slowest_s"])
    return Figures(inputs, outcomes, slowest_s, elapsed_s)


def _keep(broken: Path) -> None:
    """Print what broke something, and keep it; what libFuzzer itself left (a crash, a time-out) too."""
    for path in sorted(broken.iterdir()):
        if path.suffix == ".why":
            continue
        content = path.read_bytes()
        try:
            check(case(content), Tally())
            why = f"{path.name}: does not break anything when it is read again"
        except BrokenError as error:
            why = str(error)
        told = path.with_suffix(".why")
        if told.exists():
            why = told.read_text()
        new = keep(content, why)
        print(f"{why}\n  {content[:200].hex()}{'' if new else ' (is kept already)'}\n  commit {KEPT.relative_to(ROOT)}")


def _table(figures: Figures) -> list[str]:
    rows = [f"| {outcome} | {times:,} |" for outcome, times in sorted(figures.outcomes.items())]
    return ["| outcome | inputs |", "|---|---:|", *rows]


if __name__ == "__main__":
    sys.exit(main())
