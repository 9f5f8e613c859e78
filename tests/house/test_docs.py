"""Docs are run: every command in README and docs is one that a test runs, or it is not there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").rglob("*.md")),
]
# A command, and the test that runs it. What is not here is run below.
RUN_ELSEWHERE = {
    "make setup": "continuous integration begins with it",
    "make setup-cluster": "continuous integration begins with it",
    "make test": "continuous integration is this command",
    "make demo": "tests/runtime/test_demo.py runs the verb's program",
    "kubectl apply -f crds/ -f operator/manifests/": "tests/cluster/conftest.py installs with it",
    "kubectl apply -f examples/flights/consumer.yaml": "tests/cluster/test_flights.py applies it",
    "kubectl get pcon": "tests/cluster/test_flights.py reads its columns",
    "kubectl get pcon flights": "tests/cluster/test_flights.py reads its columns",
    "kubectl patch pcon flights --type merge -p": "tests/cluster/test_flights.py patches so",
}
# Of these pages every command is run, in order, against a real broker.
RUN_BY_PAGE = {
    "docs/operations.md": "tests/broker/test_operations_page.py",
    "docs/spark.md": "tests/spark/test_page.py",
}
RUN_HERE = {".venv/bin/pconsumer run --help", "make help"}


def commands() -> list[str]:
    """Return every line of every console block."""
    pages = [page for page in PAGES if str(page.relative_to(ROOT)) not in RUN_BY_PAGE]
    blocks = (block for page in pages for block in re.findall(r"```console\n(.*?)```", page.read_text(), re.DOTALL))
    return sorted({line.strip() for block in blocks for line in block.splitlines() if line.strip()})


@pytest.mark.parametrize("command", commands())
def test_every_documented_command_is_run(command: str) -> None:
    """A command that nothing runs is a claim that nobody checked."""
    if any(command == known or command.startswith(f"{known} '") for known in RUN_ELSEWHERE):
        return
    assert command in RUN_HERE, f"no test runs {command!r}"
    program, *arguments = command.split()
    if program.startswith(".venv/"):
        program = str(Path(sys.executable).parent / Path(program).name)
    ran = subprocess.run([program, *arguments], cwd=ROOT, capture_output=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr


def test_pages_that_are_run_as_a_whole_name_their_test() -> None:
    """The test is there, and the page says so."""
    for page, test in RUN_BY_PAGE.items():
        assert (ROOT / test).exists()
        assert test in (ROOT / page).read_text()


def test_every_verb_of_the_docs_is_in_the_makefile() -> None:
    """`make x` in the text is a verb that exists."""
    verbs = set(re.findall(r"(?m)^([a-z-]+):", (ROOT / "Makefile").read_text()))
    named = {verb for page in PAGES for verb in re.findall(r"`make ([a-z-]+)`", page.read_text())}
    assert named <= verbs


def test_every_link_leads_somewhere() -> None:
    """A relative link in a page is a file."""
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_readmes_manifest_is_one() -> None:
    """The README's first example is a valid spec."""
    import yaml  # noqa: PLC0415 - only here

    from parallel_consumer_runtime.settings import ParallelConsumerSpec  # noqa: PLC0415 - only here

    (block,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    ParallelConsumerSpec.model_validate(yaml.safe_load(block)["spec"])


HANDLERS_PAGE = (ROOT / "docs" / "handlers.md").read_text()


@pytest.mark.parametrize("fragment", re.findall(r"```yaml\n(.*?)```", HANDLERS_PAGE, re.DOTALL))
def test_every_fragment_of_the_handlers_page_fits_the_schema(fragment: str) -> None:
    """What a reader copies under `spec` is accepted."""
    import yaml  # noqa: PLC0415 - only here

    from parallel_consumer_runtime.settings import ParallelConsumerSpec  # noqa: PLC0415 - only here
    from tests.support.corpus import manifest  # noqa: PLC0415 - only here

    ParallelConsumerSpec.model_validate({**manifest()["spec"], **yaml.safe_load(fragment)})


@pytest.mark.parametrize("example", re.findall(r"```python\n(.*?)```", HANDLERS_PAGE, re.DOTALL))
def test_every_example_of_the_handlers_page_runs(example: str) -> None:
    """What a reader copies imports what exists."""
    exec(compile(example, "docs/handlers.md", "exec"), {})
