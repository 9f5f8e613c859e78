"""What `offsets show`, `offsets reset` and `replay` say of bad input, as processes: exit status 78, one sentence per problem."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.ports import free_ports

COMMAND = str(Path(sys.executable).parent / "pconsumer")
VERBS = {
    "show": ("offsets", "show"),
    "reset": ("offsets", "reset", "--to-earliest"),
    "replay": ("replay", "--from", "earliest", "--to", "latest"),
}


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run pconsumer."""
    return subprocess.run([COMMAND, *arguments], capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    """A good manifest of brokers that are not there."""
    path = tmp_path / "consumer.yaml"
    path.write_text(
        "apiVersion: parallelconsumer.io/v1alpha1\nkind: ParallelConsumer\nmetadata: {name: orders}\nspec:\n"
        "  image: orders:1\n  handler: orders:on_order\n"
        f"  kafka: {{bootstrapServers: '127.0.0.1:{free_ports(1)[0]}', groupId: orders, topics: [orders]}}\n"
    )
    return path


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_a_manifest_that_cannot_be_used_is_named(tmp_path: Path, verb: tuple[str, ...]) -> None:
    """The file and what is wrong with it."""
    ran = run(*verb, "-f", str(tmp_path / "none.yaml"))
    assert (ran.returncode, ran.stdout) == (78, "")
    assert ran.stderr == f"error: {tmp_path}/none.yaml: cannot be read (No such file or directory)\n"


def test_brokers_that_do_not_answer_are_named(manifest: Path) -> None:
    """Temporary: another try may do better. The option replaces the manifest's address."""
    nobody = f"127.0.0.1:{free_ports(1)[0]}"
    ran = run(*VERBS["show"], "-f", str(manifest), "--bootstrap-servers", nobody)
    assert (ran.returncode, ran.stdout) == (75, "")
    assert ran.stderr.startswith(f"error: spec.kafka.bootstrapServers: no broker answers at '{nobody}'")
    assert ran.stderr.count("\n") == 1


@pytest.mark.parametrize("options", [(), ("--to-earliest", "--shift", "-5"), ("--to-offset", "0", "--to-latest")])
def test_a_reset_goes_one_way(manifest: Path, options: tuple[str, ...]) -> None:
    """None and two are refused before anyone is asked; 0 is an offset."""
    ran = run("offsets", "reset", "-f", str(manifest), *options)
    assert ran.returncode == 78
    assert ran.stderr == (
        "error: give one of --to-earliest, --to-latest, --to-time, --to-offset and --shift, and only one\n"
    )


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("offsets", "reset", "--to-time", "2026-01-02T03:04:05"), "--to-time: '2026-01-02T03:04:05' has no zone"),
        (("replay", "--from", "then", "--to", "latest"), "--from: 'then' is not understood"),
        (("replay", "--from", "earliest", "--to", "offset:x"), "--to: 'x' is no offset"),
    ],
)
def test_a_place_that_cannot_be_understood_is_named(manifest: Path, options: tuple[str, ...], says: str) -> None:
    """The option, and what to write."""
    ran = run(*options, "-f", str(manifest))
    assert ran.returncode == 78
    assert ran.stderr.startswith(f"error: {says}")
