"""Manifests as files, and `pconsumer` run over them, as a person does."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import yaml

from parallel_consumer_runtime.settings import API_GROUP, API_VERSION, KIND, ParallelConsumerSpec
from tests.support.processes import REPOSITORY

COMMAND = (sys.executable, "-m", "parallel_consumer_runtime")
TIMEOUT_S = 90


def write_manifest(folder: Path, name: str, spec: ParallelConsumerSpec) -> Path:
    """Write a manifest of what was set in a spec; return its path."""
    path = folder / f"{name}.yaml"
    document = {
        "apiVersion": f"{API_GROUP}/{API_VERSION}",
        "kind": KIND,
        "metadata": {"name": name},
        "spec": spec.model_dump(mode="json", by_alias=True, exclude_unset=True),
    }
    path.write_text(yaml.safe_dump(document))
    return path


def pconsumer(
    *arguments: str, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a verb to its end; its outputs are no terminals."""
    variables = {**os.environ, "PYTHONPATH": str(REPOSITORY), **(env or {})}
    ran = subprocess.run(
        [*COMMAND, *arguments],
        env=variables,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert "Traceback" not in ran.stderr, ran.stderr
    return ran
