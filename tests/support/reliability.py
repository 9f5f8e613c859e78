"""Runs the faults on real parts and writes what was measured into docs/reliability.md.

`python -m tests.support.reliability [--every-run] [PYTEST ARGUMENT…]`: with a release's figures, or with those of every
run. A run of only some tests (`-k storm`) replaces only their rows.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from tests.support.processes import REPOSITORY
from tests.support.scale import RELEASE_ENV
from tests.support.simulation.report import PAGE, commit, write

TITLE = "Faults on real parts"
FOLDER = "tests/broker/faults"
FIGURES_FILE_ENV = "PCONSUMER_FIGURES_FILE"
LINES_MAX = 4
"""Lines of one test that go into its row; the rest is printed by the run."""


class Row(NamedTuple):
    """One fault: its words, and what each kind of run takes."""

    test: str
    fault: str
    every_run: str
    release: str


ROWS = (
    Row("test_kills_lose_nothing", "kill -9 loop, 3 processes, 8 partitions, 100 keys", "25 kills", "200 kills"),
    Row("test_rolling_restarts", "SIGTERM, one after the other", "20", "50"),
    Row("test_a_thawed_member", "SIGSTOP beyond the session, SIGCONT", "5", "20"),
    Row("test_members_that_come_and_go_repeat_nothing[range]", "storm, range (eager)", "10 s", "5 min"),
    Row("test_members_that_come_and_go_repeat_nothing[roundrobin]", "storm, roundrobin (eager)", "10 s", "5 min"),
    Row("test_members_that_come_and_go_repeat_nothing[cooperative]", "storm, cooperative-sticky", "20 s", "10 min"),
    Row("test_members_that_come_and_go_repeat_nothing[kip-848]", "storm, KIP-848", "20 s", "10 min"),
    Row("test_a_successor_whose_place", "kill -9 of a KIP-848 member, its place still held", "1", "1"),
    Row("test_a_killed_broker", "broker killed and restarted", "5", "20"),
    Row("test_consumption_resumes_after[_short_cut]", "network cut for 10 s", "1", "20"),
    Row("test_consumption_resumes_after[_long_cut]", "network cut beyond the session", "1 of 15 s", "20 of 60 s"),
    Row("test_consumption_resumes_after[_resets]", "10 resets of every connection", "1", "20"),
    Row("test_consumption_resumes_after[_latency]", "500 ms more, each way", "1", "20"),
    Row("test_consumption_resumes_after[_half_open]", "every connection half open", "1", "20"),
    Row("test_no_commit_fault", "commits refused, lost, late", "25 scripts", "25 scripts, 20 times"),
    Row("test_slow_handlers", "handler slower than max.poll.interval.ms", "1 of 15 s", "1 of 60 s"),
    Row("test_a_soak", "soak, a fault every 30 s", "3 min", "30 min"),
)


def main() -> int:
    """Run, write, and return pytest's exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every-run", action="store_true", help="the figures of every run, not a release's")
    options, arguments = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as folder:
        report, figures = Path(folder, "report.xml"), Path(folder, "figures")
        figures.touch()
        environment = {**os.environ, FIGURES_FILE_ENV: str(figures), RELEASE_ENV: "0" if options.every_run else "1"}
        command = [sys.executable, "-m", "pytest", FOLDER, "-q", f"--junitxml={report}", *arguments]
        status = subprocess.run(command, cwd=REPOSITORY, env=environment, check=False).returncode
        if not report.exists():
            return status
        results = _results(report)
        lines = _lines(figures)
    kept = _rows(PAGE.read_text()) if PAGE.exists() else {}
    for row in ROWS:
        name = next((name for name in results if name.startswith(row.test)), None)
        if name is not None:
            scale = row.every_run if options.every_run else row.release
            kept[row.fault] = _row(row, scale, results[name], lines[name])
    write(TITLE, _ABOUT, [*_HEAD, *(kept[row.fault] for row in ROWS if row.fault in kept)])
    return status


def _results(report: Path) -> dict[str, str]:
    """Return each test's verdict and seconds."""
    results: dict[str, str] = {}
    for case in ET.parse(report).getroot().iter("testcase"):
        bad = any(case.find(kind) is not None for kind in ("failure", "error", "skipped"))
        results[case.get("name", "")] = f"{'FAILED' if bad else 'passed'}, {float(case.get('time', 0)):.0f} s"
    return results


def _lines(figures: Path) -> dict[str, list[str]]:
    lines: dict[str, list[str]] = defaultdict(list)
    for text in figures.read_text().splitlines():
        told = json.loads(text)
        lines[told["test"]].append(told["line"])
    return lines


def _row(row: Row, scale: str, result: str, lines: list[str]) -> str:
    measured = "; ".join(lines[:LINES_MAX]).replace("|", "/")
    return f"| {row.fault} | {row.every_run} | {row.release} | {scale} | {result} | {measured} | {commit()} |"


def _rows(document: str) -> dict[str, str]:
    """Return the rows of an earlier run, by their fault."""
    section = document.partition(f"\n## {TITLE}\n")[2].partition("\n## ")[0]
    found = (line for line in section.splitlines() if line.startswith("| ") and not line.startswith("| fault "))
    return {line.split(" | ")[0].removeprefix("| "): line for line in found}


_ABOUT = """Real processes and a real Apache Kafka, hurt while a steady load runs; the checkers then read the whole history: nothing
lost, keys in order, no overlap, no call after a loss, no commit backwards, no repeat but what the fault excuses. Written
by `python -m tests.support.reliability`; with `--every-run`, by the figures that every run takes. Every run takes less
than a release where the wait would be all there is to it: the storms take 20 s, eager ones half of that, and the
long cut outlives a session of 6 s, not one of 45 s; a slow handler takes 15 s, not 60 s.
"""
_HEAD = (
    "| fault | every run | release | this run | result | measured | commit |",
    "|---|---|---|---|---|---|---|",
)


if __name__ == "__main__":
    sys.exit(main())
