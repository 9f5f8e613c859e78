"""The command line, as a process."""

import subprocess
import sys
from pathlib import Path

import parallel_consumer_runtime

COMMAND = str(Path(sys.executable).parent / "pconsumer")


def run(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run pconsumer."""
    return subprocess.run([COMMAND, *arguments], input=stdin, capture_output=True, text=True, timeout=60, check=False)


def test_decodes_and_encodes_offsets() -> None:
    """`offsets decode -` and `offsets encode -` are each other's inverse."""
    decoded = run("offsets", "decode", "-", stdin="0 bAALLgIA\n")
    assert decoded.returncode == 0
    assert decoded.stdout == '{"base":0,"highest":10,"incomplete":[[0,0],[4,4],[6,8],[10,10]]}\n'
    assert run("offsets", "encode", "-", stdin=decoded.stdout).stdout == "bAALLgIA\n"


def test_an_unreadable_line_makes_the_exit_status_1() -> None:
    """The other lines are printed all the same."""
    ran = run("offsets", "decode", "-", stdin="0 nonsense\n0 bAALLgIA\n")
    assert ran.returncode == 1
    first, second = ran.stdout.splitlines()
    assert first.startswith('{"error":')
    assert second.startswith('{"base":0')


def test_says_its_version_and_its_verbs() -> None:
    """`--version` is the package's; help names the verbs."""
    assert run("--version").stdout.strip() == parallel_consumer_runtime.__version__
    assert all(verb in run("--help").stdout for verb in ("run", "consume", "offsets"))


def test_a_member_without_its_environment_says_what_is_missing() -> None:
    """`consume` outside a pod names the variable, and ends with the status for configuration errors."""
    ran = run("consume")
    assert ran.returncode == 78
    assert ran.stderr.startswith("error: the environment variable POD_NAME is not set")
