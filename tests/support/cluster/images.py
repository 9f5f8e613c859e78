"""The project's images as archives: built by docker or buildah, cached by everything that goes into them.

The key is a hash of the Dockerfile, of everything that it copies and of the base; of each image the last few archives stay.
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.support.cache import cached, root
from tests.support.cluster import buildah
from tests.support.processes import REPOSITORY

ARCHIVES_KEPT = 3
"""Archives of one image that stay in the cache; each edit of the sources makes another, of some 250 MB."""


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
    buildah.BASE,
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
    buildah.BASE,
)
FLIGHTS = Image(
    "docker.io/library/flights:1", "examples/flights/Dockerfile", ("examples/flights/flights",), RUNTIME.name
)
IMAGES = (RUNTIME, OPERATOR, FLIGHTS)


def archives(*, by_docker: bool = False) -> list[Path]:
    """Return an archive of each image, built now or on an earlier day.

    Args:
        by_docker: build with docker on the Dockerfiles' own base, a public image; else with buildah on one made here.
    """
    return [(_by_docker if by_docker else _by_buildah)(image) for image in IMAGES]


def _by_buildah(image: Image) -> Path:
    # The base comes first: building it takes the lock of the image store.
    base = _by_buildah(RUNTIME) if image.base == RUNTIME.name else buildah.base_archive()
    recipe = _recipe(image, buildah.BASE_RECIPE)
    if image.base == RUNTIME.name:
        recipe += str(base).encode()

    def build(folder: Path) -> None:
        context = folder / "context"
        for path in _files(image):
            target = context / path.relative_to(REPOSITORY)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
        dockerfile, archive = context / image.dockerfile, folder / "image.tar"
        buildah.build(image.name, context, dockerfile, archive, base=image.base, base_archive=base)
        shutil.rmtree(context)

    return _kept(image, recipe, build)


def _by_docker(image: Image) -> Path:
    recipe = _recipe(image, "docker")
    chosen: list[str] = []
    if image.base == RUNTIME.name:
        recipe += str(_by_docker(RUNTIME)).encode()
        chosen = [f"--build-arg=BASE_IMAGE={RUNTIME.name}"]

    def build(folder: Path) -> None:
        dockerfile = f"--file={REPOSITORY / image.dockerfile}"
        _docker("build", "--quiet", *chosen, dockerfile, f"--tag={image.name}", str(REPOSITORY))
        _docker("save", f"--output={folder / 'image.tar'}", image.name)

    return _kept(image, recipe, build)


def _docker(*arguments: str) -> None:
    ran = subprocess.run(
        ["docker", *arguments], capture_output=True, text=True, timeout=buildah.BUILD_TIMEOUT_S, check=False
    )
    if ran.returncode:
        raise RuntimeError(f"docker {arguments[0]} failed:\n{ran.stdout[-2000:]}\n{ran.stderr[-3000:]}")


def _recipe(image: Image, base: str) -> bytes:
    files = _files(image)
    names = "\n".join([image.name, base, *(f"{path.relative_to(REPOSITORY)}" for path in files)])
    return names.encode() + b"".join(path.read_bytes() for path in files)


def _files(image: Image) -> list[Path]:
    found = [REPOSITORY / image.dockerfile]
    for name in image.contents:
        path = REPOSITORY / name
        found += [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file() and p.suffix != ".pyc")
    return found


def _kept(image: Image, recipe: bytes, build: Callable[[Path], None]) -> Path:
    """Return the archive, and forget the image's archives that were not used for longest."""
    name = f"image {image.name}"
    folder = cached(name, recipe, build)
    os.utime(folder)
    of_image = [path.parent for path in root().glob("*/.name") if path.read_text().strip() == name]
    for old in sorted(of_image, key=lambda path: path.stat().st_mtime, reverse=True)[ARCHIVES_KEPT:]:
        shutil.rmtree(old, ignore_errors=True)  # another run may be at the same
    return folder / "image.tar"
