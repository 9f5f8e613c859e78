"""The images install what the lock says."""

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("part", ["runtime", "operator"])
def test_an_images_requirements_are_the_locks(part: str) -> None:
    """`make requirements` was run after the lock changed: versions and hashes are the same."""
    export = [
        *("uv", "export", "--quiet", "--offline", "--frozen", "--no-default-groups", "--extra", part),
        *("--no-emit-project", "--no-header", "--no-annotate"),
    ]
    command = [str(Path(sys.executable).parent / export[0]), *export[1:]]
    ran = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    assert (REPOSITORY / part / "requirements.txt").read_text() == ran.stdout, "run `make requirements`"


def test_the_runtimes_image_carries_nothing_of_the_operators() -> None:
    """Neither Kopf nor the Kubernetes client is installed beside handlers."""
    lines = (REPOSITORY / "runtime" / "requirements.txt").read_text().splitlines()
    names = {line.partition("==")[0] for line in lines if "==" in line}
    assert "confluent-kafka" in names
    assert not names & {"kopf", "kubernetes", "aiohttp"}
