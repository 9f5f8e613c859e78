"""Summarises dead letters by cause and key, and puts them back into their source topic: first only saying so, then on request."""

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from parallel_consumer_spark.broker import TopicLog, topic_logs
from parallel_consumer_spark.errors import DataLossError, WindowError
from parallel_consumer_spark.jobs import command
from parallel_consumer_spark.kafka_settings import java_settings
from parallel_consumer_spark.provenance import DEAD_LETTER_PREFIX, REDRIVE_COUNT, SOURCE_COLUMNS, deduplicated, header
from parallel_consumer_spark.publishing import publish, published
from parallel_consumer_spark.reading import read_with_report
from parallel_consumer_spark.window import Window

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_TEXT_MAX = 200
"""Characters of a cell that is printed."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run. Return the exit status."""
    made = command.parser(
        "dead-letters", "Summarise dead letters, or put them back into their source topic.", "DeadLetters"
    )
    made.add_argument("--output", help="a folder for the summary, and for what was put back, as Parquet")
    made.add_argument(
        "--by", choices=("cause", "key", "cause,key"), default="cause,key", help="what the summary's rows are"
    )
    made.add_argument("--limit", type=int, default=50, help="rows of the summary that are printed")
    made.add_argument("--cause", help="only dead letters of this error")
    redrive = made.add_argument_group("putting back")
    redrive.add_argument("--redrive", action="store_true", help="say what would be put back into which topic")
    redrive.add_argument("--execute", action="store_true", help="and do it: at least once when it is killed on the way")
    redrive.add_argument("--to-topic", help="another topic than the source; the key then decides the partition")
    redrive.add_argument("--max-redrives", type=int, default=3, help="leave records that were put back so often")
    redrive.add_argument("--max-records", type=int, default=10_000, help="do nothing when there are more")
    return command.main("dead-letters", made, _run, arguments)


def _run(spark: "SparkSession", given: Any) -> None:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - Spark's own alias; loaded where a job runs

    if given.execute and not given.redrive:
        raise WindowError("--execute needs --redrive")
    window = command.window_of(spark, given)
    folder = (
        None if given.output is None else f"{given.output.rstrip('/')}/{'redriven' if given.redrive else 'summary'}"
    )
    # First: a window that was put back must not be put back again, whatever became of its offsets.
    if (
        folder is not None
        and (given.execute or not given.redrive)
        and (done := published(spark, folder, window)) is not None
    ):
        _say(
            f"window {window.sequence}: done already, by attempt {done.by}, {done.rows} rows in {done.path}; nothing was done"
        )
        return
    records, skipped = read_with_report(spark, window)
    letters = deduplicated(records).withColumns(
        {
            "cause": header(DEAD_LETTER_PREFIX + "error"),
            "message": header(DEAD_LETTER_PREFIX + "message"),
            "attempts": header(DEAD_LETTER_PREFIX + "attempts").try_cast("int"),
            "at": F.timestamp_millis(
                F.coalesce(header(DEAD_LETTER_PREFIX + "at-ms").try_cast("bigint"), F.unix_millis("timestamp"))
            ),
            "redrives": F.coalesce(header(REDRIVE_COUNT).try_cast("int"), F.lit(0)),
        }
    )
    chosen = letters if given.cause is None else letters.where(F.col("cause") == given.cause)
    if given.redrive:
        _redrive(spark, window, chosen, given, folder)
        return
    summary = summarised(chosen, given.by.split(","))
    if folder is not None:
        done = publish(summary, folder, window, skipped=skipped)
        _say(f"window {window.sequence}: {done.rows} rows published in {done.path}")
        summary = spark.read.parquet(done.path)
    summary.orderBy(F.desc("records")).show(given.limit, truncate=_TEXT_MAX)


def summarised(letters: "DataFrame", by: Sequence[str]) -> "DataFrame":
    """Return a row for each source topic and what it is told by: how many, how often tried, since when, the last one's words."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - as above

    grouped = letters.groupBy("source_topic", *by).agg(
        F.count(F.lit(1)).alias("records"),
        F.max("attempts").alias("attempts_max"),
        F.max("redrives").alias("redrives_max"),
        F.min("at").alias("first_at"),
        F.max("at").alias("last_at"),
        F.max_by("message", "at").alias("last_message"),
    )
    return grouped.withColumn("key", F.col("key").cast("string")) if "key" in by else grouped


def _redrive(spark: "SparkSession", window: Window, letters: "DataFrame", given: Any, folder: str | None) -> None:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - as above

    known = (
        F.col("source_topic").isNotNull() & F.col("source_partition").isNotNull() & F.col("source_offset").isNotNull()
    )
    verdict = F.when(~known, "foreign").when(F.col("redrives") >= given.max_redrives, "too often").otherwise("redrive")
    judged = letters.withColumn("verdict", verdict).withColumn(
        "to", F.lit(given.to_topic) if given.to_topic else F.col("source_topic")
    )
    counts = {
        (row["verdict"], row["to"]): int(row["count"]) for row in judged.groupBy("verdict", "to").count().collect()
    }
    total = sum(count for (word, _), count in counts.items() if word == "redrive")
    for (word, topic), count in sorted(counts.items(), key=str):
        if word == "redrive":
            _say(f"{count} records {'go' if given.execute else 'would go'} back to {topic}")
        elif word == "too often":
            _say(f"{count} records of {topic} stay: they were put back {given.max_redrives} times")
        else:
            _say(f"{count} records stay: no consumer of ours gave them up")
    if total > given.max_records:
        raise WindowError(
            f"{total} records would be put back, above --max-records {given.max_records}: narrow with --cause, or raise it"
        )
    if not given.execute:
        _say("nothing was done: add --execute")
        return
    chosen = judged.where("verdict = 'redrive'")
    settings, _ = java_settings(window.bootstrap_servers, window.kafka_config)
    if total:
        topics = {str(topic) for word, topic in counts if word == "redrive"}
        logs = topic_logs(spark, settings, topics)
        if missing := sorted(name for name, log in logs.items() if log is None):
            raise DataLossError(f"the topic {missing[0]} is not there: name another one with --to-topic")
        options = {f"kafka.{name}": value for name, value in settings.items()}
        put_back(chosen, {} if given.to_topic else logs).write.format("kafka").options(
            **options, **{"kafka.acks": "all", "kafka.enable.idempotence": "true"}, includeHeaders="true"
        ).save()
    _say(f"{total} records were put back")
    if folder is not None:
        told = chosen.select(
            "to", *SOURCE_COLUMNS[:3], (F.col("redrives") + 1).alias("redrive"), "cause", "topic", "partition", "offset"
        )
        publish(told, folder, window)


def put_back(letters: "DataFrame", logs: Mapping[str, TopicLog | None]) -> "DataFrame":
    """Return the records as they were, counted once more, for the partition that they came from when that is still there."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - as above

    partition: Column = F.lit(None).cast("int")
    for name, log in logs.items():
        there = (F.col("to") == name) & (F.col("source_partition") < len(log.partitions if log else ()))
        partition = F.when(there, F.col("source_partition")).otherwise(partition)
    kept = F.filter("headers", lambda one: ~one["key"].startswith(DEAD_LETTER_PREFIX) & (one["key"] != REDRIVE_COUNT))
    count = (F.col("redrives") + 1).cast("string").cast("binary")
    counted = F.array(F.struct(F.lit(REDRIVE_COUNT).alias("key"), count.alias("value")))
    return letters.select(
        F.col("to").alias("topic"),
        partition.alias("partition"),
        "key",
        "value",
        F.concat(kept, counted).alias("headers"),
    )


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - the application's output


if __name__ == "__main__":
    sys.exit(main())
