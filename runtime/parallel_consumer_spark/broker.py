"""What the brokers say of topics now, asked through the Kafka client that Spark's own source brings along.

Blocks, with bounded waits. Called on the driver, before anything is read.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from parallel_consumer_spark.errors import BrokerError, SettingError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TIMEOUT_MS = 30_000
_ADMIN = "org.apache.kafka.clients.admin"
_TEMPORARY = (
    "TimeoutException",
    "DisconnectException",
    "LeaderNotAvailableException",
    "NotLeaderOrFollowerException",
    "No resolvable bootstrap urls",
)
"""Name servers, too, may know the brokers a moment later."""


class PartitionLog(NamedTuple):
    """One partition's log."""

    start: int
    stable_end: int
    """The last stable offset: below it no transaction is open."""
    end: int
    """The high watermark."""


class TopicLog(NamedTuple):
    """One topic as the brokers have it."""

    topic_id: str
    partitions: dict[int, PartitionLog]


def topic_logs(spark: "SparkSession", settings: Mapping[str, str], names: Iterable[str]) -> dict[str, TopicLog | None]:
    """Return each topic's id and logs; None for one that is not there.

    Args:
        spark: the session whose JVM asks.
        settings: the Java client's, as `java_settings` returns them.
        names: the topics.

    Raises:
        BrokerError: no answer in time.
        SettingError: the brokers or the client refuse the settings.
    """
    from py4j.protocol import Py4JError, Py4JJavaError  # noqa: PLC0415 - Spark is loaded where a job runs

    jvm = cast("Any", spark)._jvm  # noqa: SLF001 - the documented way to a JVM class
    where = settings["bootstrap.servers"]
    given = {**settings, "default.api.timeout.ms": str(_TIMEOUT_MS), "request.timeout.ms": str(_TIMEOUT_MS // 2)}
    try:
        admin = _class(jvm, f"{_ADMIN}.AdminClient").create(_properties(jvm, given))
        try:
            return {name: _topic_log(jvm, admin, name) for name in names}
        finally:
            admin.close(jvm.java.time.Duration.ofSeconds(5))
    except Py4JJavaError as error:
        words = root_cause(error)
        if any(name in words for name in _TEMPORARY):
            raise BrokerError(f"the brokers at {where} do not answer: {words}") from error
        raise SettingError(f"the brokers at {where} cannot be asked: {words}") from error
    except (Py4JError, TypeError) as error:
        # A class that is not there is a package for py4j, and calling it raises one of these.
        raise SettingError(
            "Spark's Kafka source is not on the driver's class path: add its jars (docs/spark.md names them)"
        ) from error


def root_cause(error: Any) -> str:
    """Return the innermost exception of the JVM, as one line."""
    cause = error.java_exception
    while cause.getCause() is not None:
        cause = cause.getCause()
    return " ".join(str(cause.toString()).split())[:1000]


def _topic_log(jvm: Any, admin: Any, name: str) -> TopicLog | None:
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415 - as above

    try:
        told = admin.describeTopics([name]).allTopicNames().get().get(name)
    except Py4JJavaError as error:
        if "UnknownTopicOrPartitionException" in root_cause(error):
            return None
        raise
    place = _class(jvm, "org.apache.kafka.common.TopicPartition")
    partitions = {number: place(name, number) for number in range(int(told.partitions().size()))}
    specs, options = _class(jvm, f"{_ADMIN}.OffsetSpec"), _class(jvm, f"{_ADMIN}.ListOffsetsOptions")
    levels = _class(jvm, "org.apache.kafka.common.IsolationLevel")
    starts = _offsets(jvm, admin, partitions, specs.earliest(), options(levels.READ_UNCOMMITTED))
    stable = _offsets(jvm, admin, partitions, specs.latest(), options(levels.READ_COMMITTED))
    ends = _offsets(jvm, admin, partitions, specs.latest(), options(levels.READ_UNCOMMITTED))
    return TopicLog(
        str(told.topicId().toString()), {n: PartitionLog(starts[n], stable[n], ends[n]) for n in partitions}
    )


def _offsets(jvm: Any, admin: Any, places: Mapping[int, Any], spec: Any, options: Any) -> dict[int, int]:
    wanted = jvm.java.util.HashMap()
    for place in places.values():
        wanted.put(place, spec)
    found = admin.listOffsets(wanted, options)
    return {number: int(found.partitionResult(place).get().offset()) for number, place in places.items()}


def _properties(jvm: Any, settings: Mapping[str, str]) -> Any:
    properties = jvm.java.util.Properties()
    for name, value in settings.items():
        properties.setProperty(name, value)
    return properties


def _class(jvm: Any, name: str) -> Any:
    found = jvm
    for part in name.split("."):
        found = getattr(found, part)
    return found
