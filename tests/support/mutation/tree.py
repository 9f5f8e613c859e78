"""A copy of what mutmut needs, laid out as it likes it, outside the checkout: it leaves a second tree of mutants behind."""

import ast
import shutil
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent.parent
PACKAGE = Path("parallel_consumer_runtime")
# Random tests of many steps: a survivor would cost half a minute each, and the seeds below find more in less time.
_LEFT_OUT = (
    "tests/runtime/core/test_engine.py::TestEngine::runTest",
    "tests/runtime/core/test_ledger.py::test_memory_follows_what_is_incomplete",
)
SEEDS = 100
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
  "tests/runtime/core", "tests/test_seeds.py", {", ".join(f'"--deselect", "{test}"' for test in _LEFT_OUT)},
]
[tool.pytest.ini_options]
filterwarnings = ["error"]
pythonpath = ["."]
timeout = 300
markers = ["proves(*rows): the rows of docs/systems.md that this test proves"]
"""


def make(folder: Path) -> None:
    """Fill an empty folder: the sources under `src/`, the tests of the core, a short simulation, mutmut's settings."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "runtime" / PACKAGE, folder / "src" / PACKAGE, ignore=ignored)
    shutil.copytree(ROOT / "tests" / "runtime" / "core", folder / "tests" / "runtime" / "core", ignore=ignored)
    shutil.copytree(ROOT / "tests" / "support", folder / "tests" / "support", ignore=ignored)
    shutil.copy(ROOT / "tests" / "conftest.py", folder / "tests")
    (folder / "tests" / "test_seeds.py").write_text(_SIMULATION)
    (folder / "pyproject.toml").write_text(_SETTINGS)
    for path in (folder / "src" / PACKAGE / "core").glob("*.py"):
        path.write_text(without_decorators(path.read_text()))


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
