"""What a cluster needs of this machine, and which kind of cluster it can have."""

import os
import shutil
import subprocess
from enum import Enum
from pathlib import Path

KUBECONFIG_ENV = "PCONSUMER_TEST_KUBECONFIG"
CNI_FOLDER = Path("/usr/lib/cni")
NODE_PROGRAMS = (
    "containerd",
    "runc",
    "iptables",
    "conntrack",
    "openssl",
    "gcc",
    "debootstrap",
    "buildah",
    "go",
    "kubectl",
    "nsenter",
)


class Provider(Enum):
    """Where the cluster comes from."""

    KUBECONFIG = "an explicit kubeconfig"
    KIND = "kind"
    NODE = "a node of our own"


def choose() -> Provider:
    """Return the first that was asked for or works."""
    if os.environ.get(KUBECONFIG_ENV):
        return Provider.KUBECONFIG
    if shutil.which("kind") and shutil.which("docker") and _docker_answers():
        return Provider.KIND
    return Provider.NODE


def why_unavailable() -> str | None:
    """Return what this machine lacks to have a cluster, None when it lacks nothing."""
    provider = choose()
    if provider is not Provider.NODE:
        return None if shutil.which("kubectl") else "kubectl is not on PATH"
    if os.geteuid() != 0:
        return "a node of our own needs root; or set PCONSUMER_TEST_KUBECONFIG, or install kind with Docker"
    missing = [program for program in NODE_PROGRAMS if shutil.which(program) is None]
    if not (CNI_FOLDER / "bridge").exists():
        missing.append("containernetworking-plugins")
    if missing:
        return f"not installed: {', '.join(missing)}; `make setup-cluster` installs what Debian has, Go >= 1.26 and kubectl are yours"
    return None


def _docker_answers() -> bool:
    ran = subprocess.run(["docker", "info"], capture_output=True, check=False, timeout=20)
    return ran.returncode == 0
