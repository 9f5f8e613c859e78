"""Every commit of a group with its bytes, and who owned the partition: the coordinator's own log, read in its order.

A group's commits and its generations lie in one partition of `__consumer_offsets`. A commit belongs to the partition's owner
by the generation before it; where a generation gives a partition to nobody, because it is on its way, to the owner before:
the others' commits the coordinator refuses.
"""

import itertools
from collections.abc import Iterable
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from tests.support.kafka import KafkaBroker
from tests.support.kafka_groups import CommitRecord, GroupRecord, group_of_key, parse_commit, parse_group, place_of_key
from tests.support.kafka_view import OFFSETS_TOPIC
from tests.support.waiting import wait_until

READ_TIMEOUT_S = 60.0


class Commit(NamedTuple):
    """One commit of a partition."""

    offset: int
    metadata: str


class Tenure(NamedTuple):
    """One member's time with a partition, over as many generations as it kept it."""

    owner: str
    """The member's instance id, or its client id when it has none."""
    before: Commit | None
    """What the member found; None when nothing was committed yet."""
    commits: list[Commit]


class CommitLog:
    """The group's log from the moment when this is made, on a broker that is reached directly.

    Args:
        kafka: the broker.
        group: whose log.
    """

    def __init__(self, kafka: KafkaBroker, group: str) -> None:
        self._kafka = kafka
        self._group = group
        known = OFFSETS_TOPIC in kafka.topics()
        self._from = kafka.end_offsets(OFFSETS_TOPIC) if known else {}

    def read(self) -> list[CommitRecord | GroupRecord]:
        """Return the group's commits and generations up to now, in their order."""
        partitions = sorted(self._kafka.end_offsets(OFFSETS_TOPIC))
        consumer = Consumer(
            {
                "bootstrap.servers": self._kafka.bootstrap,
                "group.id": "nobody",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_uncommitted",
                "enable.partition.eof": True,  # marks of transactions may stand at the end, which no position passes
                "log_level": 0,
            }
        )
        ended: set[int] = set()
        records: list[CommitRecord | GroupRecord] = []

        def all_read() -> bool:
            for message in consumer.consume(1000, timeout=0.1):
                error = message.error()
                if error is not None and error.code() == KafkaError._PARTITION_EOF:
                    ended.add(message.partition() or 0)
                elif error is not None:
                    raise KafkaException(error)
                elif (record := self._parse(message.key() or b"", message.value())) is not None:
                    records.append(record)
            return len(ended) == len(partitions)

        try:
            consumer.assign([TopicPartition(OFFSETS_TOPIC, p, self._from.get(p, 0)) for p in partitions])
            wait_until(all_read, f"the log of {self._group} is read", READ_TIMEOUT_S)
        finally:
            consumer.close()
        return records

    def _parse(self, key: bytes, value: bytes | None) -> CommitRecord | GroupRecord | None:
        place = place_of_key(key)
        if place is not None and place.group == self._group:
            if value is None:
                raise AssertionError(f"the broker forgot the commit of {place}")
            return parse_commit(place, value)
        if place is None and value is not None and group_of_key(key) == self._group:
            return parse_group(self._group, value)
        return None


def tenures_of(records: Iterable[CommitRecord | GroupRecord], topic: str) -> dict[int, list[Tenure]]:
    """Return each partition's tenures in the order of the records."""
    found: dict[int, list[Tenure]] = {}
    last: dict[int, Commit] = {}
    for record in records:
        if isinstance(record, GroupRecord):
            for member in record.members:
                owner = member.instance_id or member.client_id
                for partition in (number for name, number in member.assignment if name == topic):
                    tenures = found.setdefault(partition, [])
                    if not tenures or tenures[-1].owner != owner:
                        tenures.append(Tenure(owner, last.get(partition), []))
        elif record.place.topic == topic:
            partition = record.place.partition
            last[partition] = Commit(record.offset, record.metadata)
            found[partition][-1].commits.append(last[partition])
    return found


def protocols_of(records: Iterable[CommitRecord | GroupRecord]) -> list[str]:
    """Return the assignors that the group agreed on, one after the other."""
    agreed = (record.protocol for record in records if isinstance(record, GroupRecord) and record.protocol)
    return [protocol for protocol, _ in itertools.groupby(agreed)]
