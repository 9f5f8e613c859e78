"""Output appears once and whole, whatever becomes of the drivers."""

import json
import signal
import sys
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from parallel_consumer_spark import OutputError, PartitionRange, TopicRange, Window, publish, published
from parallel_consumer_spark.storage import PosixStorage, storage
from tests.support.processes import REPOSITORY, TiedProcess
from tests.support.spark_session import driver_environment
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DRIVER = REPOSITORY / "tests" / "support" / "spark_driver.py"
STARTED_TIMEOUT_S = 150.0
GONE_TIMEOUT_S = 20.0


def window(sequence: int = 7, end: int = 100, consumer: str = "flights") -> Window:
    """Return a window of one partition; nothing reads it here."""
    topics = (TopicRange("delays", "f9mJ8WsQQCqJnuMIOi2hDw", (PartitionRange(0, 0, end),)),)
    return Window(consumer, "archive", sequence, "Results", topics, "kafka:9092")


def rows(spark: "SparkSession", count: int) -> "DataFrame":
    """Return rows with a number and its parity."""
    return spark.range(count).selectExpr("id AS n", "id % 2 AS parity")


def test_a_window_is_published_once_below_its_partition_columns(spark: "SparkSession", tmp_path: Path) -> None:
    """Readers see all windows as one table; a second run of a window changes nothing and says who was first."""
    output = str(tmp_path / "out")
    first = publish(rows(spark, 10), output, window(1), partition_by=("parity",))
    second = publish(rows(spark, 6), output, window(2), partition_by=("parity",))
    assert (first.new, first.rows, second.new, second.rows) == (True, 10, True, 6)
    again = publish(rows(spark, 99), output, window(1), partition_by=("parity",))
    assert (again.new, again.rows, again.by) == (False, 10, first.by)
    table = spark.read.parquet(output)
    assert sorted(table.columns) == ["n", "parity", "window"]
    assert [table.where(f"window = {n}").count() for n in (1, 2)] == [10, 6]
    assert list((tmp_path / "out" / ".attempts").iterdir()) == []
    mark = json.loads((tmp_path / "out" / "window=1" / "_window.json").read_text())
    assert (mark["entry"], mark["sequence"], mark["rows"]) == ("archive", 1, 10)


def test_another_window_does_not_take_a_published_ones_place(spark: "SparkSession", tmp_path: Path) -> None:
    """The same number with other offsets, or of another consumer, is an error that names both."""
    output = f"file://{tmp_path}/out put"
    assert publish(rows(spark, 1), output, window()).path == f"{output}/window=7"
    assert spark.read.parquet(output).count() == 1
    with pytest.raises(OutputError, match=r"window=7 holds another window, of flights/archive: topics differ"):
        publish(rows(spark, 1), output, window(end=101))
    with pytest.raises(OutputError, match="consumer differ; give each consumer and entry a path of its own"):
        published(spark, output, window(consumer="orders"))
    with pytest.raises(OutputError, match="a column is called 'window'"):
        publish(spark.range(1).selectExpr("id AS window"), output, window(8))
    (tmp_path / "out put" / "window=9").mkdir()
    (tmp_path / "out put" / "window=9" / "other").touch()
    with pytest.raises(OutputError, match="window=9 is in the way"):
        publish(rows(spark, 1), output, window(9))


@pytest.mark.parametrize("path", ["s3a://bucket/out", "gs://bucket/out"])
def test_an_object_store_is_refused(spark: "SparkSession", path: str) -> None:
    """It has no atomic rename: better no output than half of one that looks whole."""
    with pytest.raises(OutputError, match="has no atomic rename, and a reader could see half a window"):
        publish(rows(spark, 1), path, window())


def test_a_window_is_published_through_hadoops_file_system(spark: "SparkSession", tmp_path: Path) -> None:
    """A mount table over a local folder: the calls that HDFS gets, and the same answers."""
    (tmp_path / "out").mkdir()
    cast("Any", spark)._jsc.hadoopConfiguration().set("fs.viewfs.mounttable.t.link./data", (tmp_path / "out").as_uri())
    output = "viewfs://t/data"
    first = publish(rows(spark, 10), output, window(), partition_by=("parity",))
    again = publish(rows(spark, 10), output, window(), partition_by=("parity",))
    assert (first.new, again.new, again.rows) == (True, False, 10)
    assert spark.read.parquet(output).count() == 10
    place = storage(spark, output)
    place.write("other/file", "x")
    assert not place.rename_new("other", "window=7")
    assert place.names("window=7") == ["_SUCCESS", "_window.json", "parity=0", "parity=1"]
    assert place.names(".attempts") == []


def test_of_many_renames_at_once_one_wins(tmp_path: Path) -> None:
    """The others leave the winner's folder as it is."""
    place = PosixStorage(tmp_path)
    names = [f"{n}" for n in range(16)]
    for turn in range(20):
        for name in names:
            place.write(f"{turn}/{name}/mark", name)
        ready, won = threading.Barrier(len(names)), list[str]()

        def rename(name: str, turn: int = turn, ready: threading.Barrier = ready, won: list[str] = won) -> None:
            ready.wait(10)
            if place.rename_new(f"{turn}/{name}", f"{turn}/window"):
                won.append(name)

        threads = [threading.Thread(target=rename, args=(name,)) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
        assert len(won) == 1
        assert place.names(f"{turn}/window") == ["mark"]
        assert place.text(f"{turn}/window/mark") == won[0]


def test_a_killed_driver_leaves_nothing_to_see_and_two_at_once_publish_one(
    spark: "SparkSession", tmp_path: Path
) -> None:
    """Killed in the middle of writing, its JVM goes too; of two that finish together one publishes, and no row is there twice."""
    (tmp_path / "window.json").write_text(json.dumps(file_of(window())))
    output, signals = tmp_path / "out", tmp_path / "signals"
    signals.mkdir()
    environment = {**driver_environment(tmp_path), "PARALLEL_CONSUMER_WINDOW": str(tmp_path / "window.json")}

    def driver(name: str) -> TiedProcess:
        command = [sys.executable, str(DRIVER), str(output), str(signals), name]
        return TiedProcess(command, tmp_path / f"{name}.log", env=environment)

    with ExitStack() as stack:
        drivers = {name: stack.enter_context(driver(name)) for name in ("killed", "a", "b")}
        for name, process in drivers.items():
            wait_until((signals / name).exists, f"{name} is in the middle", STARTED_TIMEOUT_S, state=process.tail)
        assert not (output / "window=7").exists()
        assert spark.read.schema("n LONG").option("recursiveFileLookup", "false").parquet(output.as_uri()).count() == 0
        machines = children(drivers["killed"].pid)
        assert machines
        drivers["killed"].send(signal.SIGKILL)
        wait_until(lambda: not any(alive(pid) for pid in machines), "its JVM is gone", GONE_TIMEOUT_S, state=machines)
        (signals / "go").touch()
        said = {name: drivers[name].wait(STARTED_TIMEOUT_S) for name in ("a", "b")}
        assert said == {"a": 0, "b": 0}, drivers["a"].tail() + drivers["b"].tail()
        told = [
            word
            for name in ("a", "b")
            for word in ("new 1000", "published already 1000")
            if word in drivers[name].text()
        ]
        assert sorted(told) == ["new 1000", "published already 1000"]
    table = spark.read.parquet(output.as_uri())
    assert (table.count(), table.select("n").distinct().count(), table.select("driver").distinct().count()) == (
        1000,
        1000,
        1,
    )
    assert list((output / ".attempts").iterdir()) == []


def file_of(cut: Window) -> dict[str, object]:
    """Return a window's file."""
    return {"version": 1, **cut.identity, "kafka": {"bootstrapServers": cut.bootstrap_servers}}


def children(pid: int) -> list[int]:
    """Return the processes that a process started."""
    return [int(one) for task in Path(f"/proc/{pid}/task").iterdir() for one in (task / "children").read_text().split()]


def alive(pid: int) -> bool:
    """Tell whether a process runs; one that only waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
