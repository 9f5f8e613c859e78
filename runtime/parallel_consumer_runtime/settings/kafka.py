"""`spec.kafka`: brokers, group, topics, and which librdkafka keys a user may not set, and why."""

import re
from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, StringConstraints, field_validator, model_validator

from parallel_consumer_runtime.settings.model import SettingsModel
from parallel_consumer_runtime.settings.quantities import Between, Duration

TopicName = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9._-]+$", min_length=1, max_length=249)]
ConfigValue = Annotated[str, StringConstraints(max_length=4096)]
ClientConfig = Annotated[dict[str, ConfigValue], Field(max_length=64)]

MANAGED_KEYS: dict[str, str] = {
    "bootstrap.servers": "set spec.kafka.bootstrapServers",
    "metadata.broker.list": "set spec.kafka.bootstrapServers",
    "group.id": "set spec.kafka.groupId",
    "group.instance.id": "it is the pod's name, so that membership is static",
    "client.id": "it is the pod's name",
    "enable.auto.commit": "the consumer commits what is complete, by itself",
    "enable.auto.offset.store": "the consumer commits what is complete, by itself",
    "auto.commit.interval.ms": "set spec.processing.commitInterval",
    "auto.offset.reset": "set spec.kafka.autoOffsetReset",
    "session.timeout.ms": "set spec.kafka.sessionTimeout",
    "topic.metadata.refresh.interval.ms": "set spec.kafka.metadataRefresh",
    "partition.assignment.strategy": "set spec.kafka.assignor",
    "group.protocol": "set spec.kafka.groupProtocol",
    "group.remote.assignor": "set spec.kafka.assignor",
    "enable.partition.eof": "the consumer reads its own position",
    "enable.idempotence": "it is always on",
    "acks": "it is always all",
    "transactional.id": "delivery is at least once",
    "on_delivery": "it is the consumer's own",
    "test.mock.num.brokers": "use pconsumer run --embedded",
}
"""Keys the runtime owns: each with what to do instead."""

FORBIDDEN_KEYS: dict[str, str] = {
    "plugin.library.paths": "it loads code into the pod",
    "ssl.engine.location": "it loads code into the pod",
    "ssl.providers": "it loads code into the pod",
    "sasl.kerberos.kinit.cmd": "it runs a command in the pod",
    "sasl.password": "secrets are not written into manifests",
    "sasl.oauthbearer.client.secret": "secrets are not written into manifests",
    "sasl.oauthbearer.config": "secrets are not written into manifests",
    "ssl.key.password": "secrets are not written into manifests",
    "ssl.key.pem": "secrets are not written into manifests",
    "ssl.keystore.password": "secrets are not written into manifests",
}
"""Keys that load code, run commands or carry secrets."""


class AutoOffsetReset(StrEnum):
    """Where a group without a committed offset starts."""

    EARLIEST = "Earliest"
    LATEST = "Latest"
    ERROR = "Error"


class Assignor(StrEnum):
    """How the members of a group share the partitions."""

    RANGE = "Range"
    ROUND_ROBIN = "RoundRobin"
    COOPERATIVE_STICKY = "CooperativeSticky"

    @property
    def eager(self) -> bool:
        """Whether every member of a classic group gives up everything at each rebalance."""
        return self is not Assignor.COOPERATIVE_STICKY


class GroupProtocol(StrEnum):
    """How members and the group's coordinator agree."""

    CLASSIC = "Classic"
    CONSUMER = "Consumer"


class KafkaSpec(SettingsModel):
    """Where the records are, and as which group they are consumed."""

    bootstrap_servers: Annotated[str, StringConstraints(min_length=1, max_length=1024)]
    """Comma-separated `host:port` list of brokers to ask first."""
    group_id: Annotated[str, StringConstraints(min_length=1, max_length=249)]
    """The consumer group. Immutable: another group is another position in every topic."""
    topics: Annotated[list[TopicName], Field(min_length=1, max_length=64)] | None = None
    """Topics to consume; they must exist. Exclusive with topicPattern."""
    topic_pattern: Annotated[str, StringConstraints(min_length=2, max_length=249, pattern=r"^\^")] | None = None
    """Regular expression beginning with ^; topics that match later are picked up. Exclusive with topics."""
    auto_offset_reset: AutoOffsetReset = AutoOffsetReset.EARLIEST
    """Where a group starts whose partition has no committed offset, or one that retention took. Earliest, because skipping
    records loses them. Latest is decided and committed when a partition is first assigned, so that no restart decides
    anew; it also skips what comes into an added partition before it is noticed. Error ends the process instead."""
    session_timeout: Annotated[Duration, Between("6s", "30m", ", the broker's own bounds")] = 45.0
    """How long the broker waits for a silent member. 45s, Kafka's default: longer than a pod's restart, so that a
    restarted pod gets its partitions back without a rebalance."""
    metadata_refresh: Annotated[Duration, Between("1s", "1h")] = 30.0
    """How often each member asks which topics and partitions there are: a new topic of topicPattern, or a partition added to
    a topic, waits at most so long. 30s, because for a pattern each answer lists all topics of the cluster."""
    assignor: Assignor = Assignor.COOPERATIVE_STICKY
    """How members share the partitions. CooperativeSticky, because a rebalance then stops only what moves, and moves
    little; with Range and RoundRobin every member stops and gives up everything. All members must agree: change it with
    the group stopped. With groupProtocol Consumer the broker assigns, stickily, or per topic for Range."""
    group_protocol: GroupProtocol = GroupProtocol.CLASSIC
    """Classic, because every broker speaks it and a pod that was killed gets its place back at once. Consumer (KIP-848,
    brokers from 4.0) rebalances without stopping the others, but refuses a killed pod's successor until the session
    ends; session and heartbeat are then the broker's settings, and sessionTimeout is not used."""
    offset_metadata_max_bytes: Annotated[int, Field(ge=64, le=32_767)] = 4096
    """The brokers' offset.metadata.max.bytes: what a commit's map of completed records may take. 4096, the brokers' default. A
    partition hands out nothing new above its highest completed record before its map is full; with a larger one, more
    records may overtake a slow one. With commitMode Transactional 4.5 records for each byte may, 12,288 at most, and brokers
    that take less end the pod: a map that was cut would let results be seen twice."""
    config: ClientConfig = Field(default_factory=dict)
    """librdkafka properties for consumer and producer alike."""
    consumer_config: ClientConfig = Field(default_factory=dict)
    """librdkafka properties for the consumer alone, such as fetch.min.bytes."""
    producer_config: ClientConfig = Field(default_factory=dict)
    """librdkafka properties for the producer alone, such as linger.ms."""

    @field_validator("config", "consumer_config", "producer_config")
    @classmethod
    def _refuse_managed_keys(cls, config: dict[str, str]) -> dict[str, str]:
        for key in config:
            if reason := MANAGED_KEYS.get(key):
                msg = f"{key!r} is managed: {reason}"
                raise ValueError(msg)
            if reason := FORBIDDEN_KEYS.get(key):
                msg = f"{key!r} is refused: {reason}"
                raise ValueError(msg)
        return config

    @field_validator("topic_pattern")
    @classmethod
    def _compile_pattern(cls, pattern: str | None) -> str | None:
        if pattern is not None:
            try:
                re.compile(pattern)
            except re.error as error:
                msg = f"not a regular expression: {error}"
                raise ValueError(msg) from error
        return pattern

    @model_validator(mode="after")
    def _topics_xor_pattern(self) -> Self:
        if (self.topics is None) == (self.topic_pattern is None):
            msg = "set either topics or topicPattern, and only one of them"
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _assignor_of_protocol(self) -> Self:
        if self.group_protocol is GroupProtocol.CONSUMER and self.assignor is Assignor.ROUND_ROBIN:
            msg = "assignor RoundRobin is of the classic protocol: with groupProtocol Consumer choose another one"
            raise ValueError(msg)
        return self
