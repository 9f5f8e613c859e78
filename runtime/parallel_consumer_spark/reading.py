"""A window becomes a DataFrame: exactly its offsets, committed records only, through Spark's batch source."""

import json
import logging
from typing import TYPE_CHECKING, NamedTuple

from parallel_consumer_spark.broker import topic_logs
from parallel_consumer_spark.kafka_settings import java_settings
from parallel_consumer_spark.log_check import Checked, Skipped, check
from parallel_consumer_spark.window import Window

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TYPES = {
    "key": "binary",
    "value": "binary",
    "headers": "array<struct<key: string, value: binary>>",
    "timestamp": "timestamp",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
}

COLUMNS = tuple(_TYPES)

_log = logging.getLogger(__name__)


class Reading(NamedTuple):
    """A window's records, and what it had to do without."""

    records: "DataFrame"
    """The columns `COLUMNS`; read again each time it is used: cache it when it is used twice."""
    skipped: tuple[Skipped, ...]
    """Offsets that are gone; nothing, unless the window says Skip."""


def read(spark: "SparkSession", window: Window, *, partitions_min: int | None = None) -> "DataFrame":
    """Return the window's records: key and value as bytes, headers, timestamp, topic, partition and offset.

    Args:
        spark: the session, with the jars of Spark's Kafka source.
        window: what to read.
        partitions_min: tasks to split the reading into, at least; one for each Kafka partition when None.

    Raises:
        DataLossError: the log does not hold the window any more.
        BrokerError: the brokers do not answer, or a transaction is still open.
        SettingError: a Kafka setting is not for the Java client.
    """
    return read_with_report(spark, window, partitions_min=partitions_min).records


def read_with_report(spark: "SparkSession", window: Window, *, partitions_min: int | None = None) -> Reading:
    """As `read`, and tells which offsets were skipped."""
    settings, left_out = java_settings(window.bootstrap_servers, window.kafka_config)
    if left_out:
        _log.warning("these settings tune librdkafka alone and are left out: %s", ", ".join(left_out))
    names = [topic.name for topic in window.topics if any(part.offsets for part in topic.partitions)]
    checked = check(window, topic_logs(spark, settings, names)) if names else Checked((), ())
    for gone in checked.skipped:
        _log.warning(
            "%s[%d]: the offsets %d to %d are gone and skipped", gone.topic, gone.partition, gone.start, gone.end - 1
        )
    if not checked.topics:
        return Reading(_nothing(spark), checked.skipped)
    options = {f"kafka.{name}": value for name, value in settings.items()}
    options |= {
        "assign": json.dumps({topic.name: [part.partition for part in topic.partitions] for topic in checked.topics}),
        "startingOffsets": _offsets(checked, "start"),
        "endingOffsets": _offsets(checked, "end"),
        "includeHeaders": "true",
        "kafka.isolation.level": "read_committed",
        "failOnDataLoss": "true",
        "groupIdPrefix": f"parallel-consumer-spark-{window.consumer}-{window.entry}",
    }
    if partitions_min is not None:
        options["minPartitions"] = str(partitions_min)
    return Reading(spark.read.format("kafka").options(**options).load().select(*COLUMNS), checked.skipped)


def _nothing(spark: "SparkSession") -> "DataFrame":
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - Spark's own alias; loaded where a job runs

    return spark.range(0).select(*(F.lit(None).cast(kind).alias(name) for name, kind in _TYPES.items()))


def _offsets(checked: Checked, edge: str) -> str:
    return json.dumps(
        {
            topic.name: {str(part.partition): getattr(part, edge) for part in topic.partitions}
            for topic in checked.topics
        }
    )
