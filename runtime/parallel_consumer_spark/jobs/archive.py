"""Archives a window as partitioned Parquet: each record of the topic once, exactly once for a window."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parallel_consumer_spark.decoding import with_avro, with_json
from parallel_consumer_spark.errors import WindowError
from parallel_consumer_spark.jobs import command
from parallel_consumer_spark.provenance import deduplicated, with_provenance
from parallel_consumer_spark.publishing import Published, publish, published
from parallel_consumer_spark.reading import read_with_report

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DERIVED = ("date", "hour")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run. Return the exit status."""
    made = command.parser("archive", "Archive a window of a topic as Parquet.", "Results")
    made.add_argument("--output", required=True, help="the folder of all windows; each becomes window=N in it")
    made.add_argument(
        "--partition-by",
        default="date",
        help="columns that become folders, by commas; date and hour are UTC's; '' for none",
    )
    made.add_argument(
        "--values", choices=("Binary", "Text", "Json", "Avro"), default="Binary", help="what the values are"
    )
    made.add_argument("--schema", help="of Json: Spark's DDL; of Avro: its JSON; or @FILE")
    made.add_argument("--keep-duplicates", action="store_true", help="keep results that are there twice")
    return command.main("archive", made, _run, arguments)


def _run(spark: "SparkSession", given: argparse.Namespace) -> None:
    window = command.window_of(spark, given)
    # First: offsets of a window that is archived already may be gone by now.
    done = published(spark, given.output, window)
    if done is None:
        records, skipped = read_with_report(spark, window)
        known = with_provenance(records)
        if window.source != "Input" and not given.keep_duplicates:
            known = deduplicated(known)
        columns = [name for name in given.partition_by.split(",") if name]
        shaped = _with_derived(_decoded(known, given), columns)
        if missing := [name for name in columns if name not in shaped.columns]:
            raise WindowError(f"--partition-by: there is no column {missing[0]}; there are {', '.join(shaped.columns)}")
        done = publish(shaped, given.output, window, partition_by=columns, skipped=skipped)
    print(_told(window.sequence, done), flush=True)  # noqa: T201 - the application's output


def _decoded(records: "DataFrame", given: Any) -> "DataFrame":
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - Spark's own alias; loaded where a job runs

    keyed = records.withColumn("key", F.col("key").cast("string")) if given.values != "Binary" else records
    if given.values == "Text":
        return keyed.withColumn("value", F.col("value").cast("string"))
    if given.values == "Binary":
        return keyed
    if given.schema is None:
        raise WindowError(f"--values {given.values} needs --schema")
    schema = _schema(given.schema)
    read = with_json(keyed, schema) if given.values == "Json" else with_avro(keyed, schema)
    return read.drop("value")


def _schema(text: str) -> str:
    if not text.startswith("@"):
        return text
    try:
        return Path(text[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise WindowError(f"--schema: {text[1:]} cannot be read: {error}") from error


def _with_derived(records: "DataFrame", columns: Sequence[str]) -> "DataFrame":
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - as above

    forms = {"date": F.to_date("timestamp"), "hour": F.hour("timestamp")}
    return records.withColumns({name: forms[name] for name in DERIVED if name in columns})


def _told(sequence: int, done: Published) -> str:
    if done.new:
        return f"window {sequence}: {done.rows} records published in {done.path}"
    return f"window {sequence}: published already, by attempt {done.by}, {done.rows} records in {done.path}; nothing was done"


if __name__ == "__main__":
    sys.exit(main())
