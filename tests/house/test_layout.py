"""The house's rules that no linter knows: what lies where, and what must never shadow the standard library."""

import operator
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PACKAGES = (
    "operator/parallel_consumer_operator",
    "runtime/parallel_consumer_runtime",
    "runtime/parallel_consumer_spark",
)
SOURCES = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]


def test_the_standard_librarys_operator_is_the_one_imported() -> None:
    """From the repository root, `import operator` is the standard library's."""
    location = subprocess.run(
        [sys.executable, "-c", "import operator; print(operator.__file__)"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    ).stdout.strip()
    assert Path(location).parent == Path(sysconfig.get_path("stdlib"))
    assert Path(str(operator.__file__)).parent == Path(sysconfig.get_path("stdlib"))


@pytest.mark.parametrize("folder", ["operator", "runtime"])
def test_folders_that_hold_packages_are_no_packages(folder: str) -> None:
    """`operator/` and `runtime/` never get an `__init__.py`."""
    assert not (ROOT / folder / "__init__.py").exists()


def test_the_top_level_folders_are_there() -> None:
    """A newcomer finds the rooms that the README names."""
    for folder in ("operator", "runtime", "crds", "tests", "docs", "examples", "benchmarks"):
        assert (ROOT / folder).is_dir(), folder


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_module_says_what_it_does_in_its_first_line(path: Path) -> None:
    """A module opens with its docstring, and is no longer than a reader's patience."""
    lines = path.read_text().splitlines()
    assert lines, "empty modules say nothing"
    assert lines[0].startswith('"""')
    assert len(lines[0]) > 12
    assert len(lines) <= 450


def test_no_rooms_for_odds_and_ends() -> None:
    """Nothing is called utils, helpers or common."""
    strays = [
        path
        for path in SOURCES
        if re.search(r"(^|/)(utils?|helpers?|common|misc)(/|\.py$)", str(path.relative_to(ROOT)))
    ]
    assert not strays


def test_the_tree_names_no_machine() -> None:
    """No path of a machine is in a file that git tracks."""
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=30)
    pattern = re.compile(r"(/root/|/home/[a-z]|/work/(main|shared))")
    for name in tracked.stdout.splitlines():
        path = ROOT / name
        if path.suffix in {".lock", ".png"} or path == Path(__file__) or not path.is_file():
            continue
        assert not pattern.search(path.read_text(errors="replace")), name
