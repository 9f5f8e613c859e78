"""Runs one command beside a cluster: prepares, starts, runs, ends; the guardian ends it when nobody else can."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.support.cluster import binaries, images
from tests.support.cluster.diagnostics import WORK_ENV, keep_node_logs
from tests.support.cluster.guardian import NETNS_FOLDER, namespace
from tests.support.cluster.node import ADDRESS, START_TIMEOUT_S
from tests.support.cluster.prerequisites import KUBECONFIG_ENV, Provider, choose
from tests.support.kafka import kafka_jars
from tests.support.processes import LAUNCHER, REPOSITORY

PROVIDER_ENV = "PCONSUMER_CLUSTER_PROVIDER"
NODE_ADDRESS_ENV = "PCONSUMER_CLUSTER_ADDRESS"
TEARDOWN_TIMEOUT_S = 90.0
KIND_TIMEOUT_S = 600.0


def run(command: Sequence[str]) -> int:
    """Run a command with KUBECONFIG set, where the cluster is reachable. Return its exit status."""
    provider = choose()
    if provider is Provider.KUBECONFIG:
        return _spawn(command, {"KUBECONFIG": os.environ[KUBECONFIG_ENV], PROVIDER_ENV: provider.name})
    if provider is Provider.KIND:
        with _kind() as kubeconfig:
            return _spawn(command, {"KUBECONFIG": str(kubeconfig), PROVIDER_ENV: provider.name})
    with own_node() as work:
        environment = {
            "KUBECONFIG": f"{work}/pki/admin.kubeconfig",
            PROVIDER_ENV: provider.name,
            NODE_ADDRESS_ENV: ADDRESS,
            WORK_ENV: str(work),
            "TMPDIR": f"{work}/tmp",  # what the command leaves there, Kafka's data first, goes with the run
            "PATH": f"{binaries.tool('helm').parent}{os.pathsep}{os.environ['PATH']}",
        }
        return _spawn(["nsenter", f"--net={NETNS_FOLDER / namespace(work)}", *command], environment)


@contextmanager
def own_node() -> Generator[Path]:
    """Start a node of our own; yield its work folder; leave nothing."""
    programs = {path.name: str(path) for path in binaries.kubernetes().iterdir() if path.name.startswith("kube")}
    programs |= {name: str(binaries.tool(name)) for name in ("etcd", "coredns", "helm")}
    programs["pause"] = str(binaries.pause_archive())
    archives = images.archives()
    kafka_jars()  # nothing can be fetched from inside the namespace
    work = Path(tempfile.mkdtemp(prefix="pcluster-"))
    (work / "programs.json").write_text(json.dumps(programs))
    guardian = subprocess.Popen(
        [sys.executable, "-m", "tests.support.cluster.guardian", str(work)],
        stdin=subprocess.PIPE,
        cwd=REPOSITORY,
        start_new_session=True,
    )
    try:
        began = time.monotonic()
        _await_ready(work, guardian)
        ready = time.monotonic()
        for archive in archives:
            _import(work, archive)
        print(f"cluster: ready in {ready - began:.1f} s, images in {time.monotonic() - ready:.1f} s", file=sys.stderr)
        yield work
    finally:
        if guardian.stdin is not None:
            guardian.stdin.close()
        guardian.wait(TEARDOWN_TIMEOUT_S)


def _await_ready(work: Path, guardian: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while not (work / "ready").exists():
        failed = (work / "failed").exists() or guardian.poll() is not None
        if failed or time.monotonic() > deadline:
            log = work / "logs" / "node.log"
            shown = log.read_text(errors="replace")[-3000:] if log.exists() else ""
            raise RuntimeError(f"the node did not become ready; logs in {keep_node_logs(work, 'start')}:\n{shown}")
        time.sleep(0.1)


def _import(work: Path, archive: Path) -> None:
    command = ["ctr", "-a", str(work / "containerd.sock"), "-n", "k8s.io", "images", "import", str(archive)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if ran.returncode:
        raise RuntimeError(f"the image {archive} was not imported:\n{ran.stderr[-2000:]}")


@contextmanager
def _kind() -> Generator[Path]:
    name = f"pcluster-{os.getpid()}"
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = Path(folder, "kubeconfig")
        try:
            _kind_does("create", "cluster", "--name", name, "--kubeconfig", str(kubeconfig))
            for archive in images.archives(by_docker=True):
                _kind_does("load", "image-archive", str(archive), "--name", name)
            yield kubeconfig
        finally:
            _kind_does("delete", "cluster", "--name", name)


def _kind_does(*arguments: str) -> None:
    subprocess.run(["kind", *arguments], check=True, timeout=KIND_TIMEOUT_S)


def _spawn(command: Sequence[str], environment: dict[str, str]) -> int:
    """Run the command so that it ends with this process, and this process with a signal only after it."""
    tied = [sys.executable, "-I", "-S", str(LAUNCHER), str(os.getpid()), *command]
    process = subprocess.Popen(tied, cwd=REPOSITORY, env={**os.environ, **environment})
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, _frame: process.send_signal(received))
    return process.wait()


def main(arguments: Sequence[str]) -> int:
    """`run -- COMMAND…`. Return the command's exit status."""
    if len(arguments) < 3 or arguments[0] != "run" or arguments[1] != "--" or shutil.which(arguments[2]) is None:
        print("usage: python -m tests.support.cluster run -- COMMAND…", file=sys.stderr)
        return 2
    return run(arguments[2:])
