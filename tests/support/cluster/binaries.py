"""The node's programs, built from Go modules once per user: Kubernetes, etcd, CoreDNS, Helm, and a pause image."""

import hashlib
import io
import json
import os
import re
import subprocess
import tarfile
from pathlib import Path

from tests.support.cache import cached

KUBERNETES = "1.35.4"
ETCD = "v3.6.16"
COREDNS = "v1.15.0"
HELM = "v4.3.1"
PAUSE_IMAGE = "localhost/pause:1"
BUILD_TIMEOUT_S = 3000

_COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy")
_SINGLES = (
    ("etcd", "go.etcd.io/etcd/server/v3", "go.etcd.io/etcd/server/v3", ETCD),
    ("coredns", "github.com/coredns/coredns", "github.com/coredns/coredns", COREDNS),
    ("helm", "helm.sh/helm/v4/cmd/helm", "helm.sh/helm/v4", HELM),
)
# A pod's sandbox needs one process that waits, reaps and goes when told to.
_PAUSE_C = """
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
static void leave(int number) { _exit(0); }
static void reap(int number) { while (waitpid(-1, 0, WNOHANG) > 0) {} }
int main(void) {
  signal(SIGTERM, leave); signal(SIGINT, leave); signal(SIGCHLD, reap);
  for (;;) pause();
}
"""


def kubernetes() -> Path:
    """Return the folder with Kubernetes' programs."""
    return cached("kubernetes", f"{KUBERNETES}\n{_COMPONENTS}\n1", _build_kubernetes)


def tool(name: str) -> Path:
    """Return the path of etcd, coredns or helm."""
    (entry,) = (single for single in _SINGLES if single[0] == name)
    return cached(name, f"{entry}\n1", lambda folder: _build_single(folder, *entry)) / name


def pause_archive() -> Path:
    """Return a docker-archive with the pause image."""
    return cached("pause", _PAUSE_C, _build_pause) / "pause.tar"


def _build_kubernetes(folder: Path) -> None:
    source = folder / "source"
    source.mkdir()
    module = json.loads(_go(source, "mod", "download", "-json", f"k8s.io/kubernetes@v{KUBERNETES}"))
    # Its staging modules point at folders of its own repository; their published tags stand in for them.
    staged = re.findall(r"(?m)^\s*(k8s\.io/\S+) => \./staging", Path(module["GoMod"]).read_text())
    tag = "v0." + KUBERNETES.removeprefix("1.")
    lines = ["module clustertools", "", "go 1.26", "", f"require k8s.io/kubernetes v{KUBERNETES}", ""]
    lines += [f"tool k8s.io/kubernetes/cmd/{name}" for name in _COMPONENTS]
    lines += [f"replace {name} => {name} {tag}" for name in staged]
    (source / "go.mod").write_text("\n".join(lines) + "\n")
    _go(source, "mod", "tidy")
    version = "k8s.io/component-base/version"
    minor = KUBERNETES.split(".")[1]
    flags = f"-s -w -X {version}.gitVersion=v{KUBERNETES} -X {version}.gitMajor=1 -X {version}.gitMinor={minor}"
    packages = [f"k8s.io/kubernetes/cmd/{name}" for name in _COMPONENTS]
    _go(source, "build", "-trimpath", "-ldflags", flags, "-o", f"{folder}/", *packages)


def _build_single(folder: Path, name: str, package: str, module: str, version: str) -> None:
    source = folder / "source"
    source.mkdir()
    (source / "go.mod").write_text(f"module {name}tools\n\ngo 1.26\n\ntool {package}\n\nrequire {module} {version}\n")
    _go(source, "mod", "tidy")
    _go(source, "build", "-trimpath", "-ldflags", "-s -w", "-o", str(folder / name), package)


def _go(folder: Path, *arguments: str) -> str:
    environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod -buildvcs=false"}
    ran = subprocess.run(
        ["go", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=BUILD_TIMEOUT_S,
        check=False,
    )
    if ran.returncode:
        raise RuntimeError(f"go {arguments[0]} failed in {folder}:\n{ran.stderr[-3000:]}")
    return ran.stdout


def _build_pause(folder: Path) -> None:
    program = folder / "pause"
    (folder / "pause.c").write_text(_PAUSE_C)
    subprocess.run(["gcc", "-O2", "-static", "-o", str(program), str(folder / "pause.c")], check=True, timeout=60)
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        tar.add(program, "pause")
    digest = hashlib.sha256(layer.getvalue()).hexdigest()
    config = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Entrypoint": ["/pause"]},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
        }
    ).encode()
    config_name = f"{hashlib.sha256(config).hexdigest()}.json"
    manifest = [{"Config": config_name, "RepoTags": [PAUSE_IMAGE], "Layers": [f"{digest}/layer.tar"]}]
    with tarfile.open(folder / "pause.tar", "w") as tar:
        for name, content in (
            ("manifest.json", json.dumps(manifest).encode()),
            (config_name, config),
            (f"{digest}/layer.tar", layer.getvalue()),
        ):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
