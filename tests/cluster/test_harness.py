"""The harness keeps its own promises: pods, logs, DNS, pod security, in-place resize, and nothing left when killed."""

import contextlib
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.cluster.guardian import NETNS_FOLDER, cgroups
from tests.support.cluster.kubectl import KubectlError, apply, kubectl, wait_for
from tests.support.processes import REPOSITORY
from tests.support.waiting import wait_until

IMAGE = "flights:1"
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def pod(name: str, script: str, **container: Any) -> dict[str, Any]:
    """Return a pod that runs a Python script in the flights image."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": False,
            "containers": [
                {
                    "name": "main",
                    "image": IMAGE,
                    "imagePullPolicy": "Never",
                    "command": ["/opt/venv/bin/python", "-c", script],
                    "securityContext": RESTRICTED,
                    **container,
                }
            ],
        },
    }


def test_a_restricted_pod_runs_and_its_logs_are_read(namespace: str) -> None:
    """The runtime image runs as nobody on a read-only root, and imports handler and runtime."""
    script = "import os, flights.handlers, parallel_consumer_runtime; print(os.getuid(), 'imported')"
    apply(pod("one", script), namespace)
    wait_for("pod", "one", "done", lambda p: p["status"].get("phase") == "Succeeded", timeout_s=60, namespace=namespace)
    assert kubectl("logs", "one", namespace=namespace).strip() == "65532 imported"


def test_a_pod_that_is_not_restricted_is_refused(namespace: str) -> None:
    """The negative control: the namespaces of these tests do enforce the restricted level."""
    with pytest.raises(KubectlError, match="violates PodSecurity"):
        apply(pod("root", "pass", securityContext={"runAsUser": 0}), namespace)


def test_a_service_is_found_by_name(namespace: str) -> None:
    """Cluster DNS resolves a Service to its address."""
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "there"},
        "spec": {"selector": {"app": "nobody"}, "ports": [{"port": 80}]},
    }
    apply(service, namespace)
    address = kubectl("get", "service", "there", "--output=jsonpath={.spec.clusterIP}", namespace=namespace)
    script = f"""
import socket, time
for attempt in range(100):
    try:
        print(socket.gethostbyname('there.{namespace}.svc.cluster.local'))
        break
    except OSError:
        time.sleep(0.1)
"""
    apply(pod("asks", script), namespace)
    wait_for(
        "pod", "asks", "done", lambda p: p["status"].get("phase") == "Succeeded", timeout_s=60, namespace=namespace
    )
    assert kubectl("logs", "asks", namespace=namespace).strip() == address


def test_a_pod_is_resized_in_place(namespace: str) -> None:
    """More memory without another container."""
    resources = {"limits": {"cpu": "100m", "memory": "64Mi"}, "requests": {"cpu": "100m", "memory": "64Mi"}}
    apply(pod("grows", "import signal; signal.pause()", resources=resources), namespace)

    def running(found: Any) -> bool:
        return found["status"].get("phase") == "Running" and bool(found["status"].get("containerStatuses"))

    before = wait_for("pod", "grows", "running", running, timeout_s=60, namespace=namespace)
    patch = '{"spec":{"containers":[{"name":"main","resources":{"limits":{"memory":"96Mi"},"requests":{"memory":"96Mi"}}}]}}'
    kubectl("patch", "pod", "grows", "--subresource=resize", f"--patch={patch}", namespace=namespace)

    def resized(found: Any) -> bool:
        limits: Any = found["status"]["containerStatuses"][0].get("resources", {}).get("limits", {})
        return bool(limits.get("memory") == "96Mi")

    after = wait_for("pod", "grows", "resized", resized, timeout_s=30, namespace=namespace)
    first, second = (found["status"]["containerStatuses"][0]["containerID"] for found in (before, after))
    assert first == second


# A command beside a second cluster, which has a pod; it says where that cluster's folder is, and its own process id.
_COMMAND = """
set -e
kubectl run held --image=localhost/pause:1 --image-pull-policy=Never >&2
kubectl wait pod held --for=condition=Ready --timeout=60s >&2
touch "$TMPDIR/left-behind"
echo "$PCONSUMER_CLUSTER_WORK $$"
exec sleep 600
"""


def test_nothing_is_left_when_a_run_is_killed(tmp_path: Path) -> None:
    """SIGKILL of a run: its command, processes, pods, network, mounts, cgroups and folders go, with a deadline."""
    networks = set(NETNS_FOLDER.iterdir())
    log = tmp_path / "run.log"
    with log.open("wb") as errors:
        run = subprocess.Popen(
            [sys.executable, "-m", "tests.support.cluster", "run", "--", "bash", "-c", _COMMAND],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=REPOSITORY,
        )
    stdout = run.stdout
    assert stdout is not None
    said = stdout.readline().decode().split()
    assert len(said) == 2, log.read_text()
    work, command = Path(said[0]), Path("/proc", said[1])
    groups = cgroups(work)
    assert command.exists()
    assert (NETNS_FOLDER / work.name).exists()
    assert any(path.read_text().strip() for group in groups for path in group.rglob("pod*/**/cgroup.procs"))
    run.send_signal(signal.SIGKILL)
    run.wait(10)
    stdout.close()

    def left() -> list[str]:
        found = [str(path) for path in (work, command, NETNS_FOLDER / work.name, *groups) if path.exists()]
        found += [str(path) for path in NETNS_FOLDER.glob("cni-*") if path not in networks]
        for pid in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it ended while being looked at
                if str(work).encode() in (pid / "cmdline").read_bytes() + (pid / "mounts").read_bytes():
                    found.append(f"{pid}: {(pid / 'cmdline').read_bytes()!r}")
        return found

    wait_until(lambda: not left(), "everything of the run is gone", 30, state=left)
