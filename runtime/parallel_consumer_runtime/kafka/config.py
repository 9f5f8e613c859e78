"""From settings to librdkafka properties. Ours come last: what the runtime manages cannot be overridden."""

from typing import Any

from parallel_consumer_runtime.kafka.client_logs import client_logger
from parallel_consumer_runtime.kafka.client_statistics import FETCHED_KIB_MAX
from parallel_consumer_runtime.settings import AutoOffsetReset, CommitMode, KafkaSpec, Partitioner, StaticSettings
from parallel_consumer_runtime.settings.kafka import Assignor, GroupProtocol

_RESET = {AutoOffsetReset.EARLIEST: "earliest", AutoOffsetReset.LATEST: "latest", AutoOffsetReset.ERROR: "error"}

# librdkafka's own defaults read 64 MiB and 100,000 records ahead of us and wait a second when that is full. The
# engine buffers already: a shallow queue that is refilled at once keeps a pod small.
_CONSUMER_DEFAULTS: dict[str, Any] = {
    "queued.min.messages": 20_000,
    "queued.max.messages.kbytes": FETCHED_KIB_MAX,
    "fetch.queue.backoff.ms": 20,
    "fetch.wait.max.ms": 100,
    # One fetch's records come in one piece: half a megabyte of small ones fits a partition's buffer without a pause.
    "max.partition.fetch.bytes": 524_288,
    "reconnect.backoff.max.ms": 2_000,
    # A reply that never comes, of a connection whose other end is gone, holds up the commits for as long: librdkafka's
    # own minute is longer than a session. No request of a consumer's but those of a rebalance takes ten seconds.
    "socket.timeout.ms": 10_000,
}
_STRATEGIES = {
    Assignor.RANGE: "range",
    Assignor.ROUND_ROBIN: "roundrobin",
    Assignor.COOPERATIVE_STICKY: "cooperative-sticky",
}
_REMOTE_ASSIGNORS = {Assignor.RANGE: "range", Assignor.COOPERATIVE_STICKY: "uniform"}
# `_random` is for records without a key, which the sticky partitioner then keeps together for a while.
_PARTITIONERS = {Partitioner.MURMUR2: "murmur2_random", Partitioner.CRC32: "consistent_random"}


TRANSACTION_TIMEOUT_MS = 30_000
"""After so long the broker aborts by itself what a dead member left open: others wait for that before they read the
group's offsets."""


def common_config(settings: StaticSettings, member: str) -> dict[str, Any]:
    """Return what every client of this member shares."""
    return {
        **settings.kafka.config,
        "bootstrap.servers": settings.kafka.bootstrap_servers,
        "client.id": member,
        "log_level": 4,
    }


def inquiry_config(settings: StaticSettings, member: str) -> dict[str, Any]:
    """Return the properties of the client that asks for offsets: it reaches the brokers as the member's consumer does."""
    return {
        "reconnect.backoff.max.ms": 500,
        "socket.timeout.ms": 5_000,
        **common_config(settings, member),
        **settings.kafka.consumer_config,
        # What it cannot do is told to who asks; the consumer beside it has the same trouble, and logs it.
        "log_level": 0,
    }


def consumer_config(settings: StaticSettings, member: str) -> dict[str, Any]:
    """Return the properties of the member's consumer.

    Args:
        settings: the static half.
        member: the pod's name, which becomes group.instance.id.
    """
    config: dict[str, Any] = {
        **_CONSUMER_DEFAULTS,
        **common_config(settings, member),
        **settings.kafka.consumer_config,
        "group.id": settings.kafka.group_id,
        "group.instance.id": member,
        **_group_config(settings.kafka),
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": _RESET[settings.kafka.auto_offset_reset],
        "topic.metadata.refresh.interval.ms": round(settings.kafka.metadata_refresh * 1000),
        "enable.partition.eof": False,
        "logger": client_logger("consumer"),
    }
    if settings.kafka.group_protocol is GroupProtocol.CLASSIC:
        config.setdefault("heartbeat.interval.ms", min(3000, config["session.timeout.ms"] // 3))
    return config


def _group_config(kafka: KafkaSpec) -> dict[str, Any]:
    if kafka.group_protocol is GroupProtocol.CONSUMER:
        # librdkafka refuses the classic protocol's properties beside this one: session and heartbeat are the broker's.
        return {"group.protocol": "consumer", "group.remote.assignor": _REMOTE_ASSIGNORS[kafka.assignor]}
    return {
        "group.protocol": "classic",
        "partition.assignment.strategy": _STRATEGIES[kafka.assignor],
        "session.timeout.ms": round(kafka.session_timeout * 1000),
    }


def producer_config(settings: StaticSettings, member: str) -> dict[str, Any]:
    """Return the properties of the member's producer: idempotent, acknowledged by all replicas."""
    producer = settings.producer
    config: dict[str, Any] = {
        "partitioner": _PARTITIONERS[producer.partitioner],
        "linger.ms": round(producer.linger * 1000),
        "batch.size": producer.batch_bytes,
        # librdkafka refuses more than a million bytes by itself, less than the broker's and the Java client's default: a large
        # record could then be consumed and never become a dead letter. The topic's own limit is what counts.
        "message.max.bytes": 100 * 1024**2,
        "compression.type": producer.compression.lower(),
        "queue.buffering.max.kbytes": max(1, producer.buffer_bytes // 1024),
        "delivery.timeout.ms": round(producer.delivery_timeout * 1000),
        "max.in.flight.requests.per.connection": producer.max_in_flight,
        "reconnect.backoff.max.ms": 2_000,
        **common_config(settings, member),
        **settings.kafka.producer_config,
        "enable.idempotence": True,
        "acks": "all",
        "logger": client_logger("producer"),
    }
    if settings.commit_mode is CommitMode.TRANSACTIONAL:
        # The member's own, so that its next life fences and ends what this one left open.
        config["transactional.id"] = f"{settings.kafka.group_id}.{member}"
        config["transaction.timeout.ms"] = TRANSACTION_TIMEOUT_MS
        config["delivery.timeout.ms"] = min(config["delivery.timeout.ms"], TRANSACTION_TIMEOUT_MS - 10_000)
    return config
