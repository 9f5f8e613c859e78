"""Where partitions' logs begin and end, and which offset a time has: asked of the brokers, apart from any consumer."""

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any, NamedTuple, cast

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka import admin as kafka_admin
from confluent_kafka.admin import AdminClient

from parallel_consumer_runtime.core import PartitionKey
from parallel_consumer_runtime.errors import PermanentError, TemporaryError
from parallel_consumer_runtime.kafka.config import common_config
from parallel_consumer_runtime.kafka.topics import partitions
from parallel_consumer_runtime.settings import StaticSettings

TIMEOUT_S = 10.0


class LogBounds(NamedTuple):
    """What a partition holds: offsets from `start` up to, and without, `end`."""

    start: int
    end: int


class Logs:
    """Asks about the partitions of a manifest's topics. Any thread; every call blocks up to 10 s.

    Args:
        settings: whose brokers and topics.
        committed_only: ends and times leave out transactions that are open or were aborted last.
    """

    def __init__(self, settings: StaticSettings, *, committed_only: bool = False) -> None:
        self._settings = settings
        self._admin = AdminClient({**common_config(settings, settings.name), "log_level": 0})
        self._isolation = IsolationLevel.READ_COMMITTED if committed_only else IsolationLevel.READ_UNCOMMITTED

    def partitions(self) -> list[PartitionKey]:
        """Return every partition of the manifest's topics, sorted.

        Raises:
            TemporaryError: no broker answers.
            PermanentError: no topic matches the pattern.
        """
        found = partitions(self._settings)
        kafka = self._settings.kafka
        if found is None:
            msg = f"spec.kafka.bootstrapServers: no broker answers at {kafka.bootstrap_servers!r}"
            raise TemporaryError(msg)
        if not found:
            msg = (
                f"spec.kafka.topicPattern: no topic matches {kafka.topic_pattern!r}; create one or correct the pattern"
            )
            raise PermanentError(msg)
        return [PartitionKey(*one) for one in sorted(found)]

    def bounds(self, keys: Iterable[PartitionKey]) -> dict[PartitionKey, LogBounds]:
        """Return where each partition's log begins and ends.

        Raises:
            TemporaryError: the brokers do not answer, or refuse a partition.
        """
        keys, module = list(keys), cast("Any", kafka_admin)  # its annotations leave OffsetSpec unknown
        starts = self._ask(keys, module.OffsetSpec.earliest)
        ends = self._ask(keys, module.OffsetSpec.latest)
        return {key: LogBounds(starts[key], ends[key]) for key in keys}

    def at_time(self, keys: Iterable[PartitionKey], timestamp_ms: int) -> dict[PartitionKey, int | None]:
        """Return each partition's first offset whose record is not older; None where every record is older.

        Raises:
            TemporaryError: the brokers do not answer, or refuse a partition.
        """
        module = cast("Any", kafka_admin)  # as above
        found = self._ask(list(keys), lambda: module.OffsetSpec.for_timestamp(timestamp_ms))
        return {key: None if offset < 0 else offset for key, offset in found.items()}

    def _ask(self, keys: list[PartitionKey], spec: Callable[[], Any]) -> dict[PartitionKey, int]:
        if not keys:
            return {}
        wanted = {TopicPartition(*key): spec() for key in keys}
        admin = cast("Any", self._admin)  # its annotation leaves the futures' results unknown
        asked: dict[TopicPartition, Future[Any]] = admin.list_offsets(
            wanted, isolation_level=self._isolation, request_timeout=TIMEOUT_S
        )
        found: dict[PartitionKey, int] = {}
        for one, future in asked.items():
            try:
                answer = future.result(TIMEOUT_S + 1)
            except (KafkaException, FutureTimeoutError) as error:
                reason = error.args[0].str() if isinstance(error, KafkaException) else "no answer"
                msg = f"the offsets of {one.topic}[{one.partition}] could not be read: {reason}; try again"
                raise TemporaryError(msg) from error
            found[PartitionKey(one.topic, one.partition)] = int(answer.offset)
        return found
