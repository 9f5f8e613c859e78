"""What the broker says, over Kafka's protocol: topics, groups with their generation, committed offsets, ends.

Also a program, for brokers that only a command prefix can reach: `python -m tests.support.kafka_view BOOTSTRAP
METHOD ARGUMENT…` prints the method's answer as JSON.
"""

import dataclasses
import json
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any, Self, TypeVar, cast

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka import admin as kafka_admin
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from parallel_consumer_runtime.kafka.librdkafka import Position, commit_sync, committed
from tests.support.kafka_groups import GroupRecord, Member, group_of_key, is_epoch, parse_epoch, parse_group
from tests.support.waiting import wait_until

REQUEST_TIMEOUT_S = 15.0
OFFSETS_TOPIC = "__consumer_offsets"
COORDINATOR_ON_ITS_WAY = (
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError._WAIT_COORD,
)
Answer = TypeVar("Answer")
QUIET: dict[str, str | int] = {"log_level": 0, "reconnect.backoff.max.ms": 500}


@dataclasses.dataclass(frozen=True)
class GroupView:
    """A consumer group at one moment, as the broker describes it."""

    group: str
    state: str
    """`STABLE`, `EMPTY`, `DEAD`, `PREPARING_REBALANCING`, `COMPLETING_REBALANCING`, …"""
    generation: int | None
    """The classic group's generation, or the epoch of one of the new protocol; None while none was completed."""
    members: tuple[Member, ...]
    """Sorted by instance id, then member id."""


@dataclasses.dataclass(frozen=True)
class Committed:
    """A committed offset and its metadata."""

    offset: int
    metadata: str


class KafkaView:
    """A client of one broker, for asking; one thread uses it at a time. Close it."""

    def __init__(self, bootstrap: str) -> None:
        """Connect lazily to `host:port`."""
        self.bootstrap = bootstrap
        self._admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
        self._groups: dict[str, GroupRecord] = {}
        self._log: Consumer | None = None
        self._askers: dict[str, Consumer] = {}

    def ready(self) -> bool:
        """Tell whether the broker answers metadata requests."""
        try:
            return bool(self._admin.list_topics(timeout=1).brokers)
        except KafkaException:
            return False

    def create_topic(self, name: str, partitions: int, config: dict[str, str] | None = None) -> None:
        """Create a topic with one replica; done when the broker knows every partition's leader."""
        new = NewTopic(name, num_partitions=partitions, replication_factor=1, config=config or {})
        created = cast("dict[str, Future[None]]", self._admin.create_topics([new], operation_timeout=REQUEST_TIMEOUT_S))
        created[name].result(REQUEST_TIMEOUT_S)
        problems: list[KafkaException] = []

        def has_leaders() -> bool:
            try:
                # Asked first: the client remembers a partition without a leader until it is told of one in so many words.
                found = self._admin.list_topics(name, timeout=REQUEST_TIMEOUT_S).topics[name].partitions
                led = len(found) == partitions and all(one.leader >= 0 for one in found.values())
                return led and len(self._ends(name, partitions)) == partitions
            except KafkaException as error:  # many codes say that a leader is on its way; the last one is shown
                problems[:] = [error]
                return False

        wait_until(has_leaders, f"{name} has leaders", REQUEST_TIMEOUT_S, state=problems)

    def topics(self) -> dict[str, int]:
        """Return every topic's number of partitions."""
        found = self._admin.list_topics(timeout=REQUEST_TIMEOUT_S).topics
        return {name: len(topic.partitions) for name, topic in found.items()}

    def end_offsets(self, topic: str) -> dict[int, int]:
        """Return each partition's high watermark."""
        return self._ends(topic, self.topics()[topic])

    def committed(self, group: str, topic: str) -> dict[int, Committed]:
        """Return the committed offset and metadata of each partition that has one."""
        wanted = [(topic, partition) for partition in range(self.topics()[topic])]
        answer = self._coordinated(group, lambda asker: committed(asker, wanted, timeout_s=REQUEST_TIMEOUT_S))
        return {one.partition: Committed(one.offset, one.metadata) for one in answer if one.offset >= 0}

    def commit(self, group: str, topic: str, offsets: dict[int, Committed]) -> None:
        """Commit offsets and metadata for a group that has no members."""
        positions = [Position(topic, partition, one.offset, one.metadata) for partition, one in offsets.items()]
        self._coordinated(group, lambda asker: commit_sync(asker, positions))

    def group(self, group: str) -> GroupView:
        """Describe a group; one that the broker does not know is `DEAD`."""
        described = wait_until(lambda: self._describe(group), f"{group} has a coordinator", REQUEST_TIMEOUT_S)
        if isinstance(described, GroupView):
            return described
        self._read_groups()
        record = self._groups.get(group)
        members = (
            Member(
                member_id=one.member_id,
                instance_id=one.group_instance_id or None,
                client_id=one.client_id,
                assignment=_pairs(one.assignment.topic_partitions if one.assignment else ()),
            )
            for one in described.members or ()
        )
        return GroupView(
            group=group,
            state=described.state.name,
            generation=record.generation if record else None,
            members=tuple(sorted(members, key=lambda one: (one.instance_id or "", one.member_id))),
        )

    def close(self) -> None:
        """Close every client."""
        for consumer in [*self._askers.values(), *([self._log] if self._log else [])]:
            consumer.close()
        self._askers.clear()
        self._log = None

    def _coordinated(self, group: str, ask: Callable[[Consumer], Answer]) -> Answer:
        """Ask a group's coordinator, again while it is on its way: a broker's first group makes the offsets topic."""
        answers: list[Answer] = []

        def asked() -> bool:
            try:
                answers.append(ask(self._asker(group)))
            except KafkaException as error:
                if error.args[0].code() not in COORDINATOR_ON_ITS_WAY:
                    raise
            return bool(answers)

        wait_until(asked, f"{group} has a coordinator", REQUEST_TIMEOUT_S)
        return answers[0]

    def _asker(self, group: str) -> Consumer:
        """Return a consumer that never joins the group; it only asks and commits."""
        if group not in self._askers:
            self._askers[group] = Consumer(
                {
                    "bootstrap.servers": self.bootstrap,
                    "group.id": group or "nobody",
                    "enable.auto.commit": False,
                    **QUIET,
                }
            )
        return self._askers[group]

    def _read_groups(self) -> None:
        """Read what was added to the offsets topic since the last call, up to its end."""
        if self._log is None:
            partitions = self.topics()[OFFSETS_TOPIC]
            self._log = Consumer(
                {
                    "bootstrap.servers": self.bootstrap,
                    "group.id": "nobody",
                    "enable.auto.commit": False,
                    "auto.offset.reset": "earliest",
                    "isolation.level": "read_uncommitted",
                    "fetch.wait.max.ms": 50,
                    **QUIET,
                }
            )
            self._log.assign([TopicPartition(OFFSETS_TOPIC, partition, 0) for partition in range(partitions)])
        assigned = self._log.assignment()
        ends = self.end_offsets(OFFSETS_TOPIC)
        # Before the first record of a partition its position is a negative marker; an empty one is at its end.
        while any(max(one.offset, 0) < ends[one.partition] for one in self._log.position(assigned)):
            for message in self._log.consume(1000, timeout=0.02):
                if message.error() is not None:
                    raise KafkaException(message.error())
                self._note(message.key(), message.value())

    def _describe(self, group: str) -> Any:
        """Return the client's description, a dead group's view, or None while its coordinator is not there yet."""
        admin: Any = self._admin  # its annotation leaves the futures' results unknown
        asked = admin.describe_consumer_groups([group], request_timeout=REQUEST_TIMEOUT_S)[group]
        try:
            return asked.result(REQUEST_TIMEOUT_S)
        except KafkaException as error:
            code = error.args[0].code()
            if code == KafkaError.GROUP_ID_NOT_FOUND:
                return GroupView(group, "DEAD", None, ())
            if code in COORDINATOR_ON_ITS_WAY:
                return None
            raise

    def _ends(self, topic: str, partitions: int) -> dict[int, int]:
        # Not a consumer's get_watermark_offsets: for a new topic it may remember for ever that there was no partition.
        admin, module = cast("Any", self._admin), cast("Any", kafka_admin)  # their annotations leave much unknown
        wanted = {TopicPartition(topic, n): module.OffsetSpec.latest() for n in range(partitions)}
        asked = admin.list_offsets(wanted, request_timeout=REQUEST_TIMEOUT_S)
        return {int(one.partition): int(future.result(REQUEST_TIMEOUT_S).offset) for one, future in asked.items()}

    def _note(self, key: bytes | None, value: bytes | None) -> None:
        group = group_of_key(key) if key else None
        if group is None:
            return
        if value is None:
            self._groups.pop(group, None)
        elif key and is_epoch(key):
            self._groups[group] = parse_epoch(group, value)
        else:
            self._groups[group] = parse_group(group, value)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _pairs(partitions: Iterable[TopicPartition]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted((one.topic, one.partition) for one in partitions))


def main(arguments: list[str]) -> None:
    """Answer one question and print JSON: `ready`, `create_topic NAME PARTITIONS`, `topics`, `group NAME`, ….

    Raises:
        SystemExit: the method is not one of those that a command line can call.
    """
    bootstrap, method, *rest = arguments
    if method not in {"ready", "create_topic", "topics", "end_offsets", "committed", "group"}:
        sys.exit(f"unknown method {method!r}")
    with KafkaView(bootstrap) as view:
        values = [int(one) if one.isdigit() else one for one in rest]
        print(json.dumps(getattr(view, method)(*values), default=dataclasses.asdict))


if __name__ == "__main__":
    main(sys.argv[1:])
