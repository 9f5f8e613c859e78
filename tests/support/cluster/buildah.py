"""Image builds without docker or a registry: buildah, on a base image that debootstrap makes.

What the machine needs to reach its package index (CA bundle, pip's configuration) is mounted while building and leaves no
trace in the image.
"""

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from tests.support.cache import cached, root

SUITE = "bookworm"
PACKAGES = "python3,python3-venv,ca-certificates"
BASE = "localhost/parallel-consumer-base:1"
BASE_RECIPE = f"{SUITE} {PACKAGES} 2"
CA_BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")
BUILD_TIMEOUT_S = 1800


def base_archive() -> Path:
    """Return an archive of the base image, made now or on an earlier day."""
    return cached("base image", BASE_RECIPE, _build_base) / "base.tar"


def build(name: str, context: Path, dockerfile: Path, archive: Path, *, base: str, base_archive: Path) -> None:
    """Build an image and write it as a docker-archive.

    Args:
        name: the image's name.
        context: the folder that the Dockerfile copies from.
        dockerfile: its path.
        archive: the file to write.
        base: the image that BASE_IMAGE stands for.
        base_archive: where that one comes from.
    """
    with _Store() as store, tempfile.NamedTemporaryFile("w", suffix=".conf") as pip:
        store.buildah("pull", f"docker-archive:{base_archive}")
        pip.write(_pip_configuration())
        pip.flush()
        Path(pip.name).chmod(0o644)
        mounts = [f"{pip.name}:/etc/pip.conf:ro"]
        if CA_BUNDLE.exists():
            mounts.append(f"{CA_BUNDLE}:{CA_BUNDLE}:ro")
        store.buildah(
            "build",
            "--pull=never",
            "--layers",
            f"--build-arg=BASE_IMAGE={base}",
            *(f"--volume={mount}" for mount in mounts),
            f"--file={dockerfile}",
            f"--tag={name}",
            str(context),
        )
        store.buildah("push", name, f"docker-archive:{archive}:{name}")


def _build_base(folder: Path) -> None:
    tree = folder / "tree"
    command = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", SUITE, str(tree)]
    if mirror := _mirror():
        command.append(mirror)
    _run(command)
    for path in (tree / "var/cache/apt/archives", tree / "var/lib/apt/lists"):
        shutil.rmtree(path, ignore_errors=True)
    with _Store() as store:
        container = store.buildah("from", "scratch").strip()
        store.buildah("add", container, str(tree), "/")
        store.buildah("config", "--env", "PATH=/usr/local/bin:/usr/bin:/bin", container)
        store.buildah("commit", container, BASE)
        store.buildah("push", BASE, f"docker-archive:{folder}/base.tar:{BASE}")
    shutil.rmtree(tree)


def _mirror() -> str | None:
    """Return the mirror that this machine's apt uses for the suite; debootstrap's own default when it says none."""
    ran = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(SITE) $(CODENAME)", "Created-By: Packages"],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    return next((line.split()[0] for line in ran.stdout.splitlines() if line.split()[1:] == [SUITE]), None)


def _pip_configuration() -> str:
    """Return this machine's way to its package index, as a configuration file."""
    lines = ["[global]", "disable-pip-version-check = true"]
    if CA_BUNDLE.exists():
        lines.append(f"cert = {CA_BUNDLE}")
    if index := os.environ.get("PIP_INDEX_URL"):
        lines.append(f"index-url = {index}")
    return "\n".join(lines) + "\n"


class _Store:
    """buildah with a store in the user's cache, shared by all builds so that layers are made once; one at a time."""

    def __init__(self) -> None:
        self._folder = root() / "buildah"
        self._lock: int | None = None

    def buildah(self, *arguments: str) -> str:
        """Run buildah; return its output."""
        store = [f"--root={self._folder}/root", f"--runroot={self._folder}/run", "--storage-driver=overlay"]
        environment = {**os.environ, "BUILDAH_ISOLATION": "chroot"}
        policy = self._folder / "policy.json"
        policy.write_text('{"default": [{"type": "insecureAcceptAnything"}]}')
        verb, *rest = arguments
        signed = [f"--signature-policy={policy}"] if verb in {"from", "commit", "push", "pull", "build"} else []
        return _run(["buildah", *store, verb, *signed, *rest], environment)

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._lock = os.open(self._folder / "lock", os.O_CREAT | os.O_RDWR)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        return self

    def __exit__(self, *_: object) -> None:
        if self._lock is not None:
            os.close(self._lock)


def _run(command: Sequence[str], environment: dict[str, str] | None = None) -> str:
    with tempfile.TemporaryFile("w+") as errors:
        ran = subprocess.run(
            command,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=errors,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=BUILD_TIMEOUT_S,
            check=False,
        )
        if ran.returncode:
            errors.seek(0)
            raise RuntimeError(f"{' '.join(command[:4])}… failed:\n{ran.stdout[-2000:]}\n{errors.read()[-3000:]}")
    return ran.stdout
