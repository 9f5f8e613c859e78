"""The project's images as archives: built by docker or buildah, on a base of our own where no registry is reachable.

Cached by a hash of the Dockerfiles and everything that they copy. What the machine needs to reach its package index (CA
bundle, pip's configuration) is mounted while building and leaves no trace in the image.
"""

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Self

from tests.support.cache import cached, root
from tests.support.processes import REPOSITORY

SUITE = "bookworm"
PACKAGES = "python3,python3-venv,ca-certificates"
BASE = "localhost/parallel-consumer-base:1"
CA_BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")
BUILD_TIMEOUT_S = 1800


class Image(NamedTuple):
    """One image of the project."""

    name: str
    dockerfile: str
    contents: Sequence[str]
    """What its Dockerfile copies, relative to the repository."""
    base: str
    """The image that BASE_IMAGE stands for in tests."""


RUNTIME = Image(
    "docker.io/library/parallel-consumer-runtime:0.1.0",
    "runtime/Dockerfile",
    ("runtime/requirements.txt", "runtime/parallel_consumer_runtime"),
    BASE,
)
OPERATOR = Image(
    "docker.io/library/parallel-consumer-operator:0.1.0",
    "operator/Dockerfile",
    (
        "operator/requirements.txt",
        "operator/parallel_consumer_operator",
        "runtime/parallel_consumer_runtime/__init__.py",
        "runtime/parallel_consumer_runtime/py.typed",
        "runtime/parallel_consumer_runtime/settings",
    ),
    BASE,
)
FLIGHTS = Image(
    "docker.io/library/flights:1", "examples/flights/Dockerfile", ("examples/flights/flights",), RUNTIME.name
)
IMAGES = (RUNTIME, FLIGHTS)


def archives() -> list[Path]:
    """Return an archive of each image, built now or on an earlier day."""
    return [_archive(image) for image in IMAGES]


def _archive(image: Image) -> Path:
    files = _files(image)
    recipe = "\n".join([image.name, str(_base_key()), *(f"{path.relative_to(REPOSITORY)}" for path in files)]).encode()
    recipe += b"".join(path.read_bytes() for path in files)
    if image.base == RUNTIME.name:
        recipe += str(_archive(RUNTIME)).encode()
    return cached(f"image {image.name}", recipe, lambda folder: _build(image, folder)) / "image.tar"


def _files(image: Image) -> list[Path]:
    found = [REPOSITORY / image.dockerfile]
    for name in image.contents:
        path = REPOSITORY / name
        found += [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file() and p.suffix != ".pyc")
    return found


def _base_key() -> str:
    return f"{SUITE} {PACKAGES} 2"


def _base_archive() -> Path:
    return cached("base image", _base_key(), _build_base) / "base.tar"


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


def _build(image: Image, folder: Path) -> None:
    base = _archive(RUNTIME) if image.base == RUNTIME.name else _base_archive()  # before the store's lock: it may build
    with _Store() as store:
        store.buildah("pull", f"docker-archive:{base}")
        context = folder / "context"
        for path in _files(image):
            target = context / path.relative_to(REPOSITORY)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
        pip = folder / "pip.conf"
        pip.write_text(_pip_configuration())
        mounts = [f"{pip}:/etc/pip.conf:ro"]
        if CA_BUNDLE.exists():
            mounts.append(f"{CA_BUNDLE}:{CA_BUNDLE}:ro")
        store.buildah(
            "build",
            "--pull=never",
            "--layers",
            f"--build-arg=BASE_IMAGE={image.base}",
            *(f"--volume={mount}" for mount in mounts),
            f"--file={context / image.dockerfile}",
            f"--tag={image.name}",
            str(context),
        )
        store.buildah("push", image.name, f"docker-archive:{folder}/image.tar:{image.name}")
        shutil.rmtree(context)
        pip.unlink()


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
