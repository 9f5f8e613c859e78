"""The offsets that a consumer finished, as a DataFrame; and output that is published once. Importing this loads no Spark."""

from parallel_consumer_spark.decoding import with_avro, with_json
from parallel_consumer_spark.errors import (
    ApplicationError,
    BrokerError,
    DataLossError,
    OutputError,
    SettingError,
    WindowError,
)
from parallel_consumer_spark.log_check import Skipped
from parallel_consumer_spark.provenance import deduplicated, with_provenance
from parallel_consumer_spark.publishing import Published, publish, published
from parallel_consumer_spark.reading import Reading, read, read_with_report
from parallel_consumer_spark.window import PartitionRange, TopicRange, Window

__all__ = [
    "ApplicationError",
    "BrokerError",
    "DataLossError",
    "OutputError",
    "PartitionRange",
    "Published",
    "Reading",
    "SettingError",
    "Skipped",
    "TopicRange",
    "Window",
    "WindowError",
    "deduplicated",
    "publish",
    "published",
    "read",
    "read_with_report",
    "with_avro",
    "with_json",
    "with_provenance",
]
