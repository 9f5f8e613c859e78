"""Runs the tiers one after the other, never beside each other, and says of each what became of it.

`python -m tests.run [TIER…] [--require TIER,TIER|all]`: a tier that this machine cannot run is named with the reason;
with `--require` it is a failure.
"""

import argparse
import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.support import systems

ROOT = Path(__file__).parent.parent
BUILD = ROOT / "build"
REQUIRE_ENV = "PCONSUMER_REQUIRE_TIERS"
COVERED_BY = (
    *("tests/runtime/core", "tests/runtime/offsets/test_codec.py", "tests/runtime/offsets/test_lines.py"),
    *("--deselect", "tests/runtime/core/test_ledger.py::test_memory_follows_what_is_incomplete"),
)
"""The tests that run every branch of the packages that pyproject.toml names under coverage."""
_PYTEST = (sys.executable, "-m", "pytest", "-q", "--tb=short")


class Counts(NamedTuple):
    """What a tier's tests came to."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0


class Tier(NamedTuple):
    """One tier: how to run it, and why it cannot run here."""

    name: str
    commands: Sequence[Sequence[str]]
    why_unavailable: Callable[[], str | None]


def _always() -> str | None:
    return None


def _broker() -> str | None:
    from tests.support.kafka import why_unavailable  # noqa: PLC0415 - other tiers must run without it

    return why_unavailable()


def _spark() -> str | None:
    from tests.support.spark_jars import why_unavailable  # noqa: PLC0415 - as above

    return _broker() or why_unavailable()


def _cluster() -> str | None:
    from tests.support.cluster import why_unavailable  # noqa: PLC0415 - as above

    return _broker() or why_unavailable()


def tool(name: str, *arguments: str) -> list[str]:
    """Return the command of a tool of this environment."""
    return [str(Path(sys.executable).parent / name), *arguments]


def pytest(tier: str, part: str, *arguments: str) -> list[str]:
    """Return a pytest command that leaves its counts in build/."""
    report = BUILD / f"{tier}-{part}.xml"
    return [*_PYTEST, f"--junitxml={report}", *arguments]


TIERS = (
    Tier(
        "static",
        (
            tool("ruff", "check", "--quiet"),
            tool("ruff", "format", "--check", "--quiet"),
            tool("lint-imports"),
            tool("mypy"),
            tool("pyright"),
        ),
        _always,
    ),
    Tier(
        "unit",
        (
            pytest("unit", "tests", "tests/operator", "tests/runtime", "tests/house", "-m", "not acceptance"),
            # Once more, without random examples: what is covered must not hang on luck.
            [*_PYTEST, "--cov", "-m", "not hypothesis", *COVERED_BY],
        ),
        _always,
    ),
    Tier(
        "simulation",
        (
            pytest("simulation", "tests", "tests/simulation"),
            [sys.executable, "-m", "tests.support.simulation", "run", "--seeds", "20000"],
            [sys.executable, "-m", "tests.support.metadata_fuzz", "--seconds", "60"],
        ),
        _always,
    ),
    Tier(
        "broker",
        (
            pytest("broker", "tests", "tests/broker", "-m", "not acceptance"),
            pytest("broker", "acceptance", "tests/broker", "-m", "acceptance"),
        ),
        _broker,
    ),
    Tier("spark", (pytest("spark", "tests", "tests/spark"),), _spark),
    Tier(
        "cluster",
        ([sys.executable, "-m", "tests.support.cluster", "run", "--", *pytest("cluster", "tests", "tests/cluster")],),
        _cluster,
    ),
    Tier("demo", (pytest("demo", "acceptance", "tests/runtime", "-m", "acceptance"),), _always),
)


def run_tier(tier: Tier) -> tuple[bool, Counts]:
    """Run every command of a tier; the later ones even when an earlier one failed."""
    for report in BUILD.glob(f"{tier.name}-*.xml"):
        report.unlink()
    environment = {**os.environ, REQUIRE_ENV: tier.name, "PYTHONPATH": str(ROOT)}
    good = True
    for command in tier.commands:
        status = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
        empty = status == 5 and "pytest" in command
        good = good and (status == 0 or empty)
    return good, _counts(tier)


def _counts(tier: Tier) -> Counts:
    passed = failed = skipped = 0
    for report in BUILD.glob(f"{tier.name}-*.xml"):
        for suite in ET.parse(report).getroot().iter("testsuite"):
            bad = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
            skips = int(suite.get("skipped", 0))
            failed += bad
            skipped += skips
            passed += int(suite.get("tests", 0)) - bad - skips
    return Counts(passed, failed, skipped)


def main() -> int:
    """Run the tiers that were asked for. Return the exit status."""
    names = [tier.name for tier in TIERS]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tiers", nargs="*", help=f"some of: {', '.join(names)}; all when none is named")
    parser.add_argument("--require", default="", help="tiers that must run, separated by commas, or all")
    arguments = parser.parse_args()
    required = set(names if arguments.require == "all" else filter(None, arguments.require.split(",")))
    required |= set(arguments.tiers)
    if unknown := required - set(names):
        parser.error(f"unknown tier {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    BUILD.mkdir(exist_ok=True)
    lines: list[str] = []
    total, good = Counts(), True
    for tier in TIERS:
        if arguments.tiers and tier.name not in arguments.tiers:
            continue
        if reason := tier.why_unavailable():
            lines.append(f"{tier.name:8} cannot run here: {reason}")
            good = good and tier.name not in required
            continue
        print(f"--- {tier.name}", flush=True)
        began = time.monotonic()
        passed, counts = run_tier(tier)
        good = good and passed
        total = Counts(*(a + b for a, b in zip(total, counts, strict=True)))
        verdict = "passed" if passed else "FAILED"
        lines.append(
            f"{tier.name:8} {verdict}: {counts.passed} passed, {counts.failed} failed, {counts.skipped} skipped, "
            f"{time.monotonic() - began:.0f} s"
        )
    if not arguments.tiers and required == set(names) and good:
        # Only a whole run can say what every behaviour is proven by.
        good = systems.main(["check"]) == 0
    print("\n".join(["--- tiers", *lines, f"{total.passed} passed, {total.failed} failed, {total.skipped} skipped"]))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
