"""Where output lies: a shared POSIX folder, or a Hadoop file system whose rename is atomic.

Keeps: `rename_new` makes a folder appear whole or not at all, and never touches one that is there. Hadoop's own local file
system cannot promise that (a rename that loses a race becomes a copy into the winner's folder): there the operating system's is used.
"""

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast
from urllib.parse import urlparse

from parallel_consumer_spark.errors import OutputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ATOMIC_SCHEMES = ("hdfs", "viewfs", "abfs", "abfss")
"""Besides local folders. abfs: only with a hierarchical namespace. viewfs: only over file systems of this list."""


class Storage(Protocol):
    """Paths are relative to the output's own."""

    def url(self, name: str) -> str:
        """Return the full path, as Spark takes it."""
        ...

    def text(self, name: str) -> str | None:
        """Return a file's text, None when there is none."""
        ...

    def write(self, name: str, text: str) -> None:
        """Write a new file."""
        ...

    def rename_new(self, name: str, to: str) -> bool:
        """Rename a folder, atomically. Return False when the new name is taken."""
        ...

    def names(self, folder: str) -> list[str]:
        """Return what is in a folder; nothing when it is not there."""
        ...

    def delete(self, name: str) -> None:
        """Delete a folder with all that is in it; one that is not there is fine."""
        ...


def storage(spark: "SparkSession", path: str) -> Storage:
    """Return the storage of an output path.

    Raises:
        OutputError: it is in an object store, or of an unknown kind.
    """
    scheme = urlparse(path).scheme
    if scheme in {"", "file"}:
        # Without a scheme Spark would take its default file system, which must be the same one.
        default = str(_jvm(spark).org.apache.hadoop.fs.FileSystem.getDefaultUri(_configuration(spark)).getScheme())
        if scheme == "" and default != "file":
            raise OutputError(
                f"the output {path} has no scheme, and Spark's default is {default}: write {default}://… or file://…"
            )
        # As Hadoop reads a path: nothing in it is decoded.
        return PosixStorage(Path("/" + path.removeprefix("file:").lstrip("/") if scheme else path))
    if scheme in ATOMIC_SCHEMES:
        return HadoopStorage(spark, path.rstrip("/"))
    raise OutputError(
        f"the output {path}: {scheme} has no atomic rename, and a reader could see half a window; "
        f"write to a shared volume or to {', '.join(ATOMIC_SCHEMES)}"
    )


class PosixStorage:
    """A folder that driver and executors see under the same path."""

    def __init__(self, root: Path) -> None:
        """Nothing is made yet."""
        self._root = root.absolute()

    def url(self, name: str) -> str:
        """See `Storage`."""
        return f"file://{self._root / name}"

    def text(self, name: str) -> str | None:
        """See `Storage`."""
        try:
            return (self._root / name).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def write(self, name: str, text: str) -> None:
        """See `Storage`; on the disk when it returns."""
        path = self._root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())

    def rename_new(self, name: str, to: str) -> bool:
        """See `Storage`. The operating system refuses to put a folder in the place of one that holds something."""
        try:
            (self._root / name).rename(self._root / to)
        except OSError:
            if (self._root / to).exists():
                return False
            raise
        return True

    def names(self, folder: str) -> list[str]:
        """See `Storage`."""
        try:
            return sorted(os.listdir(self._root / folder))  # noqa: PTH208 - names are wanted, not paths
        except FileNotFoundError:
            return []

    def delete(self, name: str) -> None:
        """See `Storage`. Files that another driver still writes may stay: they are hidden from readers."""
        shutil.rmtree(self._root / name, ignore_errors=True)


class HadoopStorage:
    """A folder of a file system that Hadoop knows."""

    def __init__(self, spark: "SparkSession", root: str) -> None:
        """Connect to the file system."""
        self._root = root
        self._jvm = _jvm(spark)
        self._gateway = cast("Any", spark.sparkContext)._gateway  # noqa: SLF001 - as above
        configuration = _configuration(spark)
        self._system = self._path("").getFileSystem(configuration)
        # Of Hadoop's two interfaces the one that can be told not to overwrite.
        self._context = self._jvm.org.apache.hadoop.fs.FileContext.getFileContext(self._system.getUri(), configuration)

    def url(self, name: str) -> str:
        """See `Storage`."""
        return f"{self._root}/{name}" if name else self._root

    def text(self, name: str) -> str | None:
        """See `Storage`."""
        if not self._system.exists(self._path(name)):
            return None
        stream = self._system.open(self._path(name))
        try:
            return str(self._jvm.java.lang.String(stream.readAllBytes(), "UTF-8"))
        finally:
            stream.close()

    def write(self, name: str, text: str) -> None:
        """See `Storage`."""
        stream = self._system.create(self._path(name), False)
        try:
            stream.write(bytearray(text.encode()))
            stream.hsync()
        finally:
            stream.close()

    def rename_new(self, name: str, to: str) -> bool:
        """See `Storage`."""
        from py4j.protocol import Py4JJavaError  # noqa: PLC0415 - Spark is loaded where a job runs

        kind = getattr(self._jvm.org.apache.hadoop.fs, "Options$Rename")
        options = self._gateway.new_array(kind, 1)
        options[0] = kind.NONE  # it does not overwrite
        try:
            self._context.rename(self._path(name), self._path(to), options)
        except Py4JJavaError:
            if self._system.exists(self._path(to)):
                return False
            raise
        return True

    def names(self, folder: str) -> list[str]:
        """See `Storage`."""
        if not self._system.exists(self._path(folder)):
            return []
        return sorted(str(one.getPath().getName()) for one in self._system.listStatus(self._path(folder)))

    def delete(self, name: str) -> None:
        """See `Storage`."""
        self._system.delete(self._path(name), True)

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self.url(name))


def _jvm(spark: "SparkSession") -> Any:
    return cast("Any", spark)._jvm  # noqa: SLF001 - the documented way to a JVM class


def _configuration(spark: "SparkSession") -> Any:
    return cast("Any", spark)._jsc.hadoopConfiguration()  # noqa: SLF001 - as above
