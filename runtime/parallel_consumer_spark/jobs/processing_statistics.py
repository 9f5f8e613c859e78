"""How long records took, how often they were tried and how many there were, for each key and hour: from what results tell of themselves.

The name is no shorter because a file `statistics.py` beside an application would hide the standard library's module.
"""

import logging
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from parallel_consumer_spark.errors import WindowError
from parallel_consumer_spark.jobs import command
from parallel_consumer_spark.provenance import SOURCE_COLUMNS, deduplicated, told
from parallel_consumer_spark.publishing import publish, published
from parallel_consumer_spark.reading import read_with_report

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PERCENTILES = (50, 95, 99)
_ACCURACY = 10_000
_HOUR_S = 3600

_log = logging.getLogger(__name__)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run. Return the exit status."""
    made = command.parser(
        "statistics", "Latency, attempts and throughput by key and hour, of results or dead letters.", "Results"
    )
    made.add_argument("--output", help="a folder for the table as Parquet; printed when left out")
    made.add_argument(
        "--by", choices=("key,hour", "key", "hour"), default="key,hour", help="what the rows are; hours are UTC's"
    )
    made.add_argument("--limit", type=int, default=50, help="rows that are printed, the slowest first")
    return command.main("statistics", made, _run, arguments)


def _run(spark: "SparkSession", given: Any) -> None:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - Spark's own alias; loaded where a job runs

    window = command.window_of(spark, given)
    if window.source == "Input":
        raise WindowError("the window is of the input: only results and dead letters tell what became of a record")
    if given.output is not None and (done := published(spark, given.output, window)) is not None:
        print(f"window {window.sequence}: done already, by attempt {done.by}, {done.rows} rows in {done.path}")  # noqa: T201 - output
        return
    records, skipped = read_with_report(spark, window)
    table = statistics_of(records, given.by.split(","))
    if given.output is not None:
        done = publish(table, given.output, window, skipped=skipped)
        print(f"window {window.sequence}: {done.rows} rows published in {done.path}")  # noqa: T201 - output
        table = spark.read.parquet(done.path)
    else:
        table = table.cache()
    if table.count() and not table.where("latency_ms_max IS NOT NULL").count():
        _log.warning("no record tells when its source was produced: its latency and attempts stay empty")
    table.orderBy(F.desc_nulls_last("latency_ms_max")).show(given.limit, truncate=False)


def statistics_of(records: "DataFrame", by: Sequence[str]) -> "DataFrame":
    """Return a row for each key, hour or both.

    Args:
        records: of a results or dead-letter topic, as `read` returns them.
        by: some of `key` and `hour`.

    Returns:
        records (of the source), results, latency_ms_p50, _p95, _p99 and _max (from the source's timestamp until the record was settled),
        attempts_mean and attempts_max, and records_per_s over the hour, or over all hours that there are when `by` has none.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - as above

    settled_ms = F.coalesce(told("at-ms").try_cast("bigint"), F.unix_millis("timestamp"))
    known = deduplicated(records).withColumns(
        {
            "latency_ms": settled_ms - told("timestamp-ms").try_cast("bigint"),
            "attempts": told("attempts").try_cast("int"),
            "hour": F.date_trunc("hour", F.timestamp_millis(settled_ms)),
            "source": F.struct(*SOURCE_COLUMNS[:3]),
        }
    )
    # A record of many results is one record: what is told of it is the same in each, but for the time.
    once = known.groupBy(
        *by, "source", F.when(F.col("source_topic").isNull(), F.struct("topic", "partition", "offset"))
    ).agg(
        F.count(F.lit(1)).alias("results"),
        F.max("latency_ms").alias("latency_ms"),
        F.max("attempts").alias("attempts"),
        F.max("hour").alias("_hour"),
    )
    marks = F.percentile_approx("latency_ms", [mark / 100 for mark in _PERCENTILES], _ACCURACY)
    table = once.groupBy(*by).agg(
        F.count(F.lit(1)).alias("records"),
        F.sum("results").alias("results"),
        marks.alias("_marks"),
        F.max("latency_ms").alias("latency_ms_max"),
        F.avg("attempts").alias("attempts_mean"),
        F.max("attempts").alias("attempts_max"),
        (F.count(F.lit(1)) / (F.count_distinct("_hour") * _HOUR_S)).alias("records_per_s"),
    )
    named = [F.col("_marks")[n].alias(f"latency_ms_p{mark}") for n, mark in enumerate(_PERCENTILES)]
    keys = [F.col("key").cast("string") if name == "key" else F.col(name) for name in by]
    counts = ("latency_ms_max", "attempts_mean", "attempts_max", "records_per_s")
    return table.select(*keys, "records", "results", *named, *counts)


if __name__ == "__main__":
    sys.exit(main())
