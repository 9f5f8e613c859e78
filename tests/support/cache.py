"""What is built once lives in the user's cache folder, keyed by a hash of its recipe.

`<cache>/parallel-consumer/<hash>`, where the cache is $XDG_CACHE_HOME or ~/.cache. Built under a temporary name, behind
a lock, then renamed: a build that was killed leaves nothing that looks whole, and two builds at once become one.
"""

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

Recipe = bytes | str | Iterable[Path]


def root() -> Path:
    """Return the folder of everything that is built once."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "parallel-consumer"


def fingerprint(name: str, recipe: Recipe) -> str:
    """Return the hash of a recipe: of its text, or of the names and contents of its files."""
    digest = hashlib.sha256(name.encode() + b"\0")
    if isinstance(recipe, str):
        digest.update(recipe.encode())
    elif isinstance(recipe, bytes):
        digest.update(recipe)
    else:
        for path in sorted(recipe):
            content = path.read_bytes()
            digest.update(f"{path.name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:32]


def cached(name: str, recipe: Recipe, build: Callable[[Path], None]) -> Path:
    """Return the folder that `build` filled, now or on an earlier day.

    Args:
        name: for people who look into the cache; part of the key.
        recipe: everything that decides the content: versions, sources, options.
        build: fills the empty folder that it is given; whatever it raises is passed on, and nothing is kept.
    """
    key = fingerprint(name, recipe)
    target = root() / key
    if target.is_dir():
        return target
    root().mkdir(parents=True, exist_ok=True)
    with (root() / f"{key}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if target.is_dir():
            return target
        building = root() / f"{key}.building"
        shutil.rmtree(building, ignore_errors=True)
        building.mkdir()
        build(building)
        (building / ".name").write_text(name + "\n")
        building.rename(target)
    return target
