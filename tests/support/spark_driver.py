"""A driver that publishes a thousand rows, and stops in the middle of writing until it is told to go on.

`python spark_driver.py OUTPUT SIGNALS NAME`: when half of its rows are written it makes the file `NAME` in the folder SIGNALS, and waits
for the file `go` there. Prints `new` or `published already`.
"""

import sys
import time
from pathlib import Path
from typing import Any, cast

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own alias

from parallel_consumer_spark import Window, publish

ROWS = 1000
WAIT_S = 200.0


def main(output: str, signals: str, name: str) -> None:
    """Publish."""

    def held(number: int) -> int:
        # In the second of two tasks, when the first one's file is written.
        if number == ROWS - 1:
            Path(signals, name).touch()
            deadline = time.monotonic() + WAIT_S
            while not Path(signals, "go").exists():
                if time.monotonic() > deadline:
                    raise TimeoutError("nobody said go")
                time.sleep(0.01)
        return number

    spark = cast("Any", SparkSession.builder).getOrCreate()
    rows = spark.range(0, ROWS, 1, 1).select(F.udf(held, "long")("id").alias("n"), F.lit(name).alias("driver"))
    done = publish(rows, output, Window.from_environment(), partition_by=("driver",))
    print("new" if done.new else "published already", done.rows)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
