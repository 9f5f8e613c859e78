"""A copy of what mutmut needs, laid out as it likes it, outside the checkout: it leaves a second tree of mutants behind."""

import ast
import shutil
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent.parent
PACKAGE = Path("parallel_consumer_runtime")
_IGNORED = shutil.ignore_patterns("__pycache__")
# A survivor costs as long as all tests take: what is left out has a quicker sibling, or finds less than the seeds below.
_LEFT_OUT = (
    "test_engine.py::TestEngine::runTest",
    "test_ledger.py::test_memory_follows_what_is_incomplete",
    "test_gates.py::test_each_partition_has_its_own_rate[300.0]",
    "test_gates.py::test_the_members_rate_holds_within_a_twentieth[333.0]",
    "test_gates.py::test_the_members_rate_holds_within_a_twentieth[400.0]",
)
SEEDS = 40
_SIMULATION = f'''"""The simulation, in short."""

from tests.support.simulation import World
from tests.support.simulation.running import quiet


def test_seeds_break_nothing() -> None:
    """What breaks a guarantee raises."""
    quiet()
    for seed in range({SEEDS}):
        World(seed).run()
'''
_SETTINGS = f"""
[tool.mutmut]
source_paths = ["src"]
only_mutate = ["src/{PACKAGE}/core/*.py"]
timeout_constant = 2.0
timeout_multiplier = 5.0
pytest_add_cli_args = [
  "--import-mode=importlib", "-p", "tests.support.mutation.quick", "-p", "no:cacheprovider",
  "--hypothesis-profile=mutation", "--hypothesis-seed=0",
]
pytest_add_cli_args_test_selection = [
  "tests/runtime/core", "tests/test_seeds.py",
  {", ".join(f'"--deselect", "tests/runtime/core/{test}"' for test in _LEFT_OUT)},
]
[tool.pytest.ini_options]
filterwarnings = ["error"]
pythonpath = ["."]
timeout = 300
markers = ["proves(*rows): the rows of docs/systems.md that this test proves"]
"""


def make(folder: Path) -> None:
    """Fill a folder: the sources under `src/`, the tests of the core, a short simulation, mutmut's settings."""
    shutil.copytree(ROOT / "runtime" / PACKAGE, folder / "src" / PACKAGE, ignore=_IGNORED)
    for path in (folder / "src" / PACKAGE / "core").glob("*.py"):
        path.write_text(without_decorators(path.read_text()))
    renew(folder)


def renew(folder: Path) -> None:
    """Give a folder the tests of now.

    Raises:
        ValueError: the core is another than what its mutants were made of.
    """
    for path in (ROOT / "runtime" / PACKAGE / "core").glob("*.py"):
        copy = folder / "src" / PACKAGE / "core" / path.name
        if not copy.exists() or copy.read_text() != without_decorators(path.read_text()):
            msg = f"core/{path.name} has changed: begin in another folder"
            raise ValueError(msg)
    shutil.rmtree(folder / "tests", ignore_errors=True)
    shutil.copytree(ROOT / "tests" / "runtime" / "core", folder / "tests" / "runtime" / "core", ignore=_IGNORED)
    shutil.copytree(ROOT / "tests" / "support", folder / "tests" / "support", ignore=_IGNORED)
    shutil.copy(ROOT / "tests" / "conftest.py", folder / "tests")
    (folder / "tests" / "test_seeds.py").write_text(_SIMULATION)
    (folder / "pyproject.toml").write_text(_SETTINGS)


def without_decorators(source: str) -> str:
    """Return a module whose properties are made by a call behind their function: mutmut passes over what is decorated."""
    lines = source.splitlines()
    classes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef)]
    functions = [node for each in classes for node in each.body if isinstance(node, ast.FunctionDef)]
    for function in sorted(functions, key=lambda each: each.lineno, reverse=True):
        match function.decorator_list:
            case [ast.Name(id="property") as decorator] if function.end_lineno is not None:
                lines.insert(function.end_lineno, f"    {function.name} = property({function.name})")
                lines[decorator.lineno - 1] = ""
            case _:
                pass
    return "\n".join(lines) + "\n"
