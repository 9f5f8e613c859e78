"""A window's output becomes visible once, whole: written to an attempt's own folder, then renamed to the window's.

    <path>/window=7/…                                              visible: Parquet, below the columns of `partition_by`
    <path>/window=7/_window.json                                   whose window it is, and what was written
    <path>/.attempts/<consumer>-<entry>-7-<hash>/<attempt>-<x>/…   hidden from Spark and others that read tables

Keeps: `window=7` appears by one atomic rename that never replaces anything. Of two drivers at once one publishes, the other says that
it is done already; a driver that is killed leaves nothing visible; what it leaves hidden, the next one for the window deletes.
"""

import datetime as dt
import hashlib
import json
import logging
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from parallel_consumer_spark.errors import OutputError
from parallel_consumer_spark.log_check import Skipped
from parallel_consumer_spark.storage import Storage, storage
from parallel_consumer_spark.window import Window, attempt

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WINDOW_COLUMN = "window"
ATTEMPTS = ".attempts"
MARK = "_window.json"

_log = logging.getLogger(__name__)


class Published(NamedTuple):
    """A window's output."""

    path: str
    """The window's folder."""
    new: bool
    """False when an earlier run, or one beside this one, published it: then this one changed nothing."""
    by: str
    """The attempt that published it."""
    rows: int
    """How many rows it holds."""


def published(spark: "SparkSession", path: str, window: Window) -> Published | None:
    """Return what an earlier run published of this window, None when none did.

    Raises:
        OutputError: another window has the place, or the path is of a kind that cannot be published to.
    """
    return _published(storage(spark, path), path, window)


def publish(
    records: "DataFrame",
    path: str,
    window: Window,
    *,
    partition_by: Sequence[str] = (),
    skipped: Sequence[Skipped] = (),
) -> Published:
    """Write records as Parquet, and let them be seen once, all at the same moment.

    Args:
        records: what is written; read once.
        path: the output's folder, of all windows; a local one must be on a volume that executors see too.
        window: whose output it is; its sequence number names the folder.
        partition_by: columns that become folders below the window's.
        skipped: noted beside the output.

    Raises:
        OutputError: see `published`; or a column is called `window`.
    """
    spark = records.sparkSession
    place = storage(spark, path)
    if (found := _published(place, path, window)) is not None:
        return found
    if WINDOW_COLUMN in records.columns:
        raise OutputError(
            f"a column is called {WINDOW_COLUMN!r}, which names the folders of the output: rename the column"
        )
    attempts = f"{ATTEMPTS}/{_attempts_of(window)}"
    # Two drivers may both be the first attempt, when a pod was lost and lives on unseen.
    name = f"{attempt()}-{uuid.uuid4().hex[:8]}"
    folder = f"{attempts}/{name}"
    try:
        rows = _write(records, place.url(folder), partition_by)
        mark = {
            **window.identity,
            "attempt": name,
            "rows": rows,
            "publishedAt": _now(),
            "skipped": [one._asdict() for one in skipped],
        }
        place.write(f"{folder}/{MARK}", json.dumps(mark, indent=1) + "\n")
        place.rename_new(folder, _folder(window))
        found = _published(place, path, window)
    except Exception:
        # Whoever publishes deletes the other attempts: what fails here then is of no importance.
        found = _published(place, path, window)
        if found is None:
            _discard(place, folder)
            raise
    _discard(place, attempts)
    if found is None:
        raise OutputError(f"{place.url(_folder(window))} is in the way: it is no window's output; move it away")
    return found._replace(new=found.by == name)


def _attempts_of(window: Window) -> str:
    """Return a name for people, and a hash because names may hold what parts them."""
    whose = [window.namespace, window.consumer, window.consumer_uid, window.entry, window.sequence]
    digest = hashlib.sha256(json.dumps(whose).encode()).hexdigest()[:8]
    return f"{window.consumer}-{window.entry}-{window.sequence}-{digest}"


def _discard(place: Storage, folder: str) -> None:
    """Delete what nobody sees; that it cannot be deleted changes nothing of what was published."""
    try:
        place.delete(folder)
    except Exception as error:  # noqa: BLE001 - Java's errors too
        _log.warning("%s cannot be deleted: %s", folder, error)


def _write(records: "DataFrame", url: str, partition_by: Sequence[str]) -> int:
    """Write, and return the number of rows, without reading them twice."""
    from pyspark.sql import Observation  # noqa: PLC0415 - Spark is loaded where a job runs
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - Spark's own alias

    seen = Observation()
    counted = records.observe(seen, F.count(F.lit(1)).alias("rows"))
    counted.write.mode("errorifexists").partitionBy(*partition_by).parquet(url)
    return int(seen.get["rows"])


def _published(place: Storage, path: str, window: Window) -> Published | None:
    text = place.text(f"{_folder(window)}/{MARK}")
    if text is None:
        return None
    try:
        mark = cast("dict[str, Any]", json.loads(text))
        different = [name for name, value in window.identity.items() if mark[name] != value]
        found = Published(place.url(_folder(window)), new=False, by=str(mark["attempt"]), rows=int(mark["rows"]))
    except (ValueError, KeyError, TypeError) as error:
        raise OutputError(f"{path}/{_folder(window)}/{MARK} is no window's mark: {error!r}") from error
    if different:
        raise OutputError(
            f"{path}/{_folder(window)} holds another window, of {mark['consumer']}/{mark['entry']}: {', '.join(different)} differ; "
            "give each consumer and entry a path of its own"
        )
    return found


def _folder(window: Window) -> str:
    return f"{WINDOW_COLUMN}={window.sequence}"


def _now() -> str:
    return dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")
