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
    """The other lines are printed all the same, bytes that are no text among them."""
    lines = b"0 nonsense\n\xff\xfe x\n0 \xff\n0 bAALLgIA\n"
    ran = subprocess.run([COMMAND, "offsets", "decode", "-"], input=lines, capture_output=True, timeout=60, check=False)
    assert ran.returncode == 1
    assert ran.stderr == b""
    *bad, good = ran.stdout.splitlines()
    assert len(bad) == 3
    assert all(line.startswith(b'{"error":') for line in bad)
    assert good.startswith(b'{"base":0')


def test_says_its_version_and_its_verbs() -> None:
    """`--version` is the package's; help names the verbs."""
    assert run("--version").stdout.strip() == parallel_consumer_runtime.__version__
    assert all(verb in run("--help").stdout for verb in ("run", "consume", "offsets"))


def test_a_member_without_its_environment_says_what_is_missing() -> None:
    """`consume` outside a pod names the variable, and ends with the status for configuration errors."""
    ran = run("consume")
    assert ran.returncode == 78
    assert ran.stderr.startswith("error: the environment variable POD_NAME is not set")


def test_a_run_that_cannot_begin_says_so_in_one_line_per_problem(tmp_path: Path) -> None:
    """Exit status not 0, no traceback; each line begins with `error:`, the file and the field."""
    ran = run("run", "-f", str(tmp_path / "none.yaml"))
    assert ran.returncode == 1
    assert ran.stderr == f"error: {tmp_path}/none.yaml: cannot be read (No such file or directory)\n"
    path = tmp_path / "bad.yaml"
    path.write_text("apiVersion: parallelconsumer.io/v1alpha1\nkind: ParallelConsumer\nmetadata: {name: a}\nspec: {}\n")
    ran = run("run", "-f", str(path))
    assert ran.returncode == 1
    lines = ran.stderr.splitlines()
    assert f"error: {path}: spec.handler: is required; add it" in lines
    assert all(line.startswith(f"error: {path}: spec.") for line in lines)


def test_options_that_exclude_each_other_are_refused() -> None:
    """An embedded broker and the address of another one make no sense together."""
    ran = run("run", "-f", "x.yaml", "--embedded", "--bootstrap-servers", "x:1")
    assert ran.returncode == 2
    assert ran.stderr == "error: --embedded brings its own broker: leave out --bootstrap-servers\n"
