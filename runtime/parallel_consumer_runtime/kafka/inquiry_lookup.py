"""Asks the brokers where the logs of a member's topics begin and end, through a client of its own.

Keeps: a topic's offsets and its id belong together; when the topics changed while they were asked for, all is asked again.

The client is an admin client, which may abort the process when a broker dies; but only while a question to a group's coordinator
is open, and none of these is one (`tests/broker/test_inquiry.py` kills a broker under them, again and again).
"""

import base64
import re
import struct
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any, NamedTuple, cast

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec  # the package's own name for it is no export to type checkers

from parallel_consumer_runtime.core import PartitionKey
from parallel_consumer_runtime.errors import TemporaryError
from parallel_consumer_runtime.kafka.config import inquiry_config
from parallel_consumer_runtime.settings import (
    CommitMode,
    OffsetsAnswer,
    PartitionOffsets,
    StaticSettings,
    TopicOffsets,
    TopicRole,
)

_SPECS = cast("Any", OffsetSpec)  # its methods have no annotations
_PAUSE_S = 0.05
_MARGIN_S = 0.2
"""The client ends a question by itself, and says why, before nobody waits for it any more."""


# What is so for a moment: a leader is on its way, a broker is back soon, a topic was deleted between two questions.
_PASSING = {
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.OFFSET_NOT_AVAILABLE,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.NETWORK_EXCEPTION,
    KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001 - librdkafka's local codes have this form
    KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001 - as above
    KafkaError._NOENT,  # noqa: SLF001 - as above; it knows of no leader, until the topic is described again
    KafkaError._TRANSPORT,  # noqa: SLF001 - as above
    KafkaError._TIMED_OUT,  # noqa: SLF001 - as above
    KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001 - as above
}


class _Topic(NamedTuple):
    """What the brokers know of a topic."""

    id: str
    partitions: tuple[int, ...]


class _ChangedError(Exception):
    """The topics are not what they were: ask again."""


class OffsetsLookUp:
    """See kafka/inquiry.py: LookUp. Made and called by one thread.

    Args:
        settings: the static half: which topics, and how the brokers are reached.
        member: the pod's name.

    Raises:
        TemporaryError: librdkafka refuses a property.
    """

    def __init__(self, settings: StaticSettings, member: str) -> None:
        self._settings = settings
        transactional = settings.commit_mode is CommitMode.TRANSACTIONAL
        self._isolation = IsolationLevel.READ_COMMITTED if transactional else IsolationLevel.READ_UNCOMMITTED
        try:
            # Its annotations leave the futures' results unknown.
            self._admin = cast("Any", AdminClient(inquiry_config(settings, member)))
        except KafkaException as error:
            msg = f"spec.kafka.config: {error.args[0].str()}"
            raise TemporaryError(msg) from error

    def __call__(self, timeout_s: float) -> OffsetsAnswer:
        """Ask now, and again while another try may succeed.

        Raises:
            TemporaryError: no answer within the time, or a refusal.
        """
        deadline = time.monotonic() + timeout_s - _MARGIN_S
        while True:
            try:
                return self._look(deadline)
            except (KafkaException, FutureTimeoutError, _ChangedError) as error:
                told = error.args[0] if isinstance(error, KafkaException) else None
                if time.monotonic() + _PAUSE_S >= deadline or (told is not None and told.code() not in _PASSING):
                    words = "no answer in time" if told is None else told.str()
                    where = self._settings.kafka.bootstrap_servers
                    msg = f"the brokers at {where} did not tell the offsets ({words}): ask again"
                    raise TemporaryError(msg) from error
                time.sleep(_PAUSE_S)

    def _look(self, deadline: float) -> OffsetsAnswer:
        at = time.time()
        roles = self._roles(deadline)
        names = {name for _, name in roles}
        topics = self._describe(names, deadline)
        keys = [PartitionKey(name, number) for name, topic in topics.items() for number in topic.partitions]
        starts = self._ask(keys, _SPECS.earliest(), deadline)
        ends = self._ask(keys, _SPECS.latest(), deadline)
        found = {key: (_offset(starts[key], deadline), _offset(ends[key], deadline)) for key in keys}
        # A topic that was made anew in between would have the other one's offsets under its id.
        if self._describe(names, deadline) != topics:
            raise _ChangedError
        return OffsetsAnswer(at=at, topics=[_told(role, name, topics.get(name), found) for role, name in roles])

    def _roles(self, deadline: float) -> list[tuple[TopicRole, str]]:
        settings = self._settings
        inputs: Iterable[str] = settings.kafka.topics or ()
        if (pattern := settings.kafka.topic_pattern) is not None:
            known = self._admin.list_topics(timeout=_left(deadline)).topics
            inputs = [name for name in known if re.match(pattern, name)]
        roles = [(TopicRole.INPUT, name) for name in sorted(inputs)]
        if settings.results_topic is not None:
            roles.append((TopicRole.RESULTS, settings.results_topic))
        if settings.dead_letter_topic is not None:
            roles.append((TopicRole.DEAD_LETTERS, settings.dead_letter_topic))
        return roles

    def _describe(self, names: Iterable[str], deadline: float) -> dict[str, _Topic]:
        """Return the topics that exist."""
        if not (wanted := sorted(names)):
            return {}
        asked = self._admin.describe_topics(TopicCollection(wanted), request_timeout=_left(deadline))
        topics: dict[str, _Topic] = {}
        for name, future in asked.items():
            try:
                one = future.result(_left(deadline))
            except KafkaException as error:
                if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise
            else:
                topics[name] = _Topic(_letters(one.topic_id), tuple(sorted(each.id for each in one.partitions)))
        return topics

    def _ask(self, keys: Iterable[PartitionKey], spec: object, deadline: float) -> dict[PartitionKey, Future[Any]]:
        if not (wanted := {TopicPartition(*key): spec for key in keys}):
            return {}
        asked = self._admin.list_offsets(wanted, isolation_level=self._isolation, request_timeout=_left(deadline))
        return {PartitionKey(one.topic, one.partition): future for one, future in asked.items()}


def _told(
    role: TopicRole, name: str, topic: _Topic | None, found: Mapping[PartitionKey, tuple[int, int]]
) -> TopicOffsets:
    if topic is None:
        return TopicOffsets(name=name, id=None, role=role, partitions=[])
    partitions = [
        PartitionOffsets(partition=number, start=start, end=end)
        for number in topic.partitions
        for start, end in [found[PartitionKey(name, number)]]
    ]
    return TopicOffsets(name=name, id=topic.id, role=role, partitions=partitions)


def _offset(future: Future[Any], deadline: float) -> int:
    return int(future.result(_left(deadline)).offset)


def _left(deadline: float) -> float:
    return max(0.001, deadline - time.monotonic())


def _letters(topic_id: Any) -> str:
    """Return a topic's id as Kafka's own tools print it. The client prints letters that theirs do not."""
    both = struct.pack(">qq", topic_id.get_most_significant_bits(), topic_id.get_least_significant_bits())
    return base64.urlsafe_b64encode(both).decode().rstrip("=")
