"""The cache of what is built once."""

from pathlib import Path

import pytest

from tests.support.cache import cached, fingerprint, root


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test has a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_builds_once() -> None:
    """The second call with the same recipe builds nothing."""
    builds: list[Path] = []

    def build(folder: Path) -> None:
        builds.append(folder)
        (folder / "x").write_text("1")

    first = cached("thing", b"recipe", build)
    assert cached("thing", b"recipe", build) == first
    assert len(builds) == 1
    assert (first / "x").read_text() == "1"
    assert cached("thing", b"another recipe", build) != first


def test_a_build_that_failed_leaves_nothing() -> None:
    """A failed build is not taken for a whole one; the next call builds anew."""

    def fail(folder: Path) -> None:
        (folder / "half").write_text("1")
        raise RuntimeError("disk full")

    with pytest.raises(RuntimeError, match="disk full"):
        cached("thing", b"recipe", fail)
    folder = cached("thing", b"recipe", lambda folder: (folder / "whole").touch())
    assert not (folder / "half").exists()
    assert (folder / "whole").exists()
    assert folder.parent == root()


def test_a_recipe_of_files_is_their_content(tmp_path: Path) -> None:
    """A changed file is another recipe."""
    source = tmp_path / "pom.xml"
    source.write_text("a")
    before = fingerprint("thing", [source])
    source.write_text("b")
    assert fingerprint("thing", [source]) != before
