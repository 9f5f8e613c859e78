"""What is kept of a cluster when a test fails: objects, events, logs of pods and of the node's components."""

import json
import os
import re
import subprocess
from pathlib import Path

from tests.support.processes import REPOSITORY

FOLDER = REPOSITORY / "build" / "cluster-failures"
WORK_ENV = "PCONSUMER_CLUSTER_WORK"
KINDS = "pods,events,services,configmaps,statefulsets,deployments,parallelconsumers"
_TIMEOUT_S = 30
_TAIL_BYTES = 200_000


def keep(test: str) -> Path:
    """Write everything worth knowing into a folder of the test's name; return it. Never raises for the cluster's sake."""
    folder = _folder(test)
    objects = _kubectl("get", KINDS, "--all-namespaces", "--output=json", "--ignore-not-found")
    (folder / "objects.json").write_text(objects)
    table = _kubectl("get", KINDS, "--all-namespaces", "--output=wide", "--ignore-not-found")
    (folder / "objects.txt").write_text(table)
    for namespace, pod in _pods():
        logs = _kubectl("logs", "--namespace", namespace, pod, "--all-containers", "--tail=2000", "--prefix")
        before = _kubectl("logs", "--namespace", namespace, pod, "--all-containers", "--tail=500", "--previous")
        (folder / f"{namespace}.{pod}.log").write_text(logs + "\n--- previous\n" + before)
    if work := os.environ.get(WORK_ENV):
        keep_node_logs(Path(work), test)
    return folder


def keep_node_logs(work: Path, test: str) -> Path:
    """Write the ends of the logs of a node's components into a folder of the test's name; return it."""
    folder = _folder(test)
    for log in Path(work, "logs").glob("*.log"):
        (folder / f"node.{log.name}").write_bytes(log.read_bytes()[-_TAIL_BYTES:])
    return folder


def _folder(test: str) -> Path:
    folder = FOLDER / re.sub(r"[^\w.-]+", "_", test)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _pods() -> list[tuple[str, str]]:
    answer = _kubectl("get", "pods", "--all-namespaces", "--output=json")
    try:
        listed = json.loads(answer)["items"]
    except (ValueError, KeyError):
        return []
    return [(pod["metadata"]["namespace"], pod["metadata"]["name"]) for pod in listed]


def _kubectl(*arguments: str) -> str:
    try:
        ran = subprocess.run(["kubectl", *arguments], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return f"kubectl {arguments[0]} did not answer within {_TIMEOUT_S} s"
    return ran.stdout or ran.stderr
