"""What the shipped applications have in common on their command line: the window, the session, and how they end.

An application ends with 0, or with one line that begins with `error:` and the status of errors.py; 2 for a wrong command line.
"""

import argparse
import logging
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from parallel_consumer_spark.broker import PartitionLog, root_cause, topic_logs
from parallel_consumer_spark.errors import ApplicationError, DataLossError, WindowError
from parallel_consumer_spark.kafka_settings import java_settings
from parallel_consumer_spark.window import SOURCES, PartitionRange, TopicRange, Window

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARK_STATUS = 70


def parser(name: str, about: str, source: str) -> argparse.ArgumentParser:
    """Return a parser with the arguments that say which offsets to read.

    Args:
        name: the application's.
        about: one sentence.
        source: what a topic that is named here holds, one of `SOURCES`.
    """
    made = argparse.ArgumentParser(name, description=about)
    made.set_defaults(source=source)
    made.add_argument("--window", type=Path, help="the window's file; the operator names it in the environment")
    hand = made.add_argument_group("without a window's file")
    hand.add_argument("--bootstrap-servers", help="brokers, as host:port,host:port")
    hand.add_argument("--topic", help="the topic to read")
    hand.add_argument("--from", dest="start", default="earliest", help="earliest, or PARTITION:OFFSET,…")
    hand.add_argument(
        "--to", dest="end", default="latest", help="latest, or PARTITION:OFFSET,…; the offset itself is not read"
    )
    hand.add_argument(
        "--sequence", type=int, default=1, help="names the output's folder; another range needs another number"
    )
    hand.add_argument("--source", choices=SOURCES, help=f"what the topic holds; {source} when left out")
    hand.add_argument(
        "--kafka-config", action="append", default=[], metavar="NAME=VALUE", help="a setting, by librdkafka's name"
    )
    return made


def main(
    name: str,
    made: argparse.ArgumentParser,
    run: "Callable[[SparkSession, Any], None]",
    arguments: Sequence[str] | None,
) -> int:
    """Parse, run with a session, and return the exit status."""
    given = made.parse_args(arguments)
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s")
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415 - Spark is loaded where a job runs
    from pyspark.errors import PySparkException  # noqa: PLC0415 - as above
    from pyspark.sql import SparkSession  # noqa: PLC0415 - as above

    try:
        # A session that is there already is its owner's to stop.
        shared = SparkSession.getActiveSession()
        spark: SparkSession = shared or cast("Any", SparkSession.builder).appName(name).getOrCreate()
        try:
            # Dates and hours are UTC's wherever a job runs.
            spark.conf.set("spark.sql.session.timeZone", "UTC")
            run(spark, given)
        finally:
            if shared is None:
                spark.stop()
    except ApplicationError as error:
        return _failed(str(error), error.exit_status)
    except Py4JJavaError as error:
        return _failed(root_cause(error), SPARK_STATUS)
    except PySparkException as error:
        return _failed(" ".join(str(error).split())[:1000], SPARK_STATUS)
    return 0


def window_of(spark: "SparkSession", given: Any) -> Window:
    """Return the window of the arguments, else of the environment.

    Raises:
        WindowError: it is not there, or the arguments contradict each other.
        ApplicationError: the brokers, asked for the ends of a topic, do not answer.
    """
    if given.window is not None and given.topic is not None:
        raise WindowError("give either --window or --topic")
    if given.window is not None:
        return Window.from_file(given.window)
    if given.topic is None:
        return Window.from_environment()
    if given.bootstrap_servers is None:
        raise WindowError("--topic needs --bootstrap-servers")
    if given.sequence < 0:
        raise WindowError(f"--sequence is {given.sequence}: give a whole number from 0")
    config = dict(_setting(text) for text in given.kafka_config)
    settings, _ = java_settings(given.bootstrap_servers, config)
    log = topic_logs(spark, settings, [given.topic])[given.topic]
    if log is None:
        raise DataLossError(f"the topic {given.topic} is not there")
    ranges = _ranges(log.partitions, given.start, given.end)
    return Window(
        consumer="by-hand",
        entry=given.topic,
        sequence=given.sequence,
        source=given.source,
        topics=(TopicRange(given.topic, log.topic_id, ranges),),
        bootstrap_servers=given.bootstrap_servers,
        kafka_config=config,
    )


def _ranges(logs: dict[int, PartitionLog], start: str, end: str) -> tuple[PartitionRange, ...]:
    known_start, known_end = start == "earliest", end == "latest"
    starts = {number: log.start for number, log in logs.items()} if known_start else _offsets("--from", start)
    ends = {number: log.stable_end for number, log in logs.items()} if known_end else _offsets("--to", end)
    # A word knows all partitions: what the other one names is meant.
    numbers = set(ends) if known_start else set(starts) if known_end else set(starts) | set(ends)
    found: list[PartitionRange] = []
    for number in sorted(numbers):
        if number not in starts or number not in ends or number not in logs:
            raise WindowError(f"partition {number}: --from and --to must both name it, and the topic have it")
        if ends[number] < starts[number]:
            raise WindowError(f"partition {number}: --to is {ends[number]}, below --from {starts[number]}")
        found.append(PartitionRange(number, starts[number], ends[number]))
    return tuple(found)


def _offsets(option: str, text: str) -> dict[int, int]:
    try:
        pairs = [part.split(":") for part in text.split(",")]
        found = {int(number): int(offset) for number, offset in pairs}
    except ValueError as error:
        raise WindowError(f"{option} is {text!r}: give PARTITION:OFFSET,PARTITION:OFFSET or a word") from error
    if min(*found, *found.values()) < 0:
        raise WindowError(f"{option} is {text!r}: neither partitions nor offsets are negative")
    return found


def _setting(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator:
        raise WindowError(f"--kafka-config is {text!r}: give NAME=VALUE")
    return name, value


def _failed(message: str, status: int) -> int:
    print(f"error: {message}", file=sys.stderr, flush=True)  # noqa: T201 - the reason, for people and the operator
    return status
