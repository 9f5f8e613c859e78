"""From settings to librdkafka properties. Ours come last: what the runtime manages cannot be overridden."""

import logging
from typing import Any

from parallel_consumer_runtime.settings import AutoOffsetReset, StaticSettings

_RESET = {AutoOffsetReset.EARLIEST: "earliest", AutoOffsetReset.LATEST: "latest", AutoOffsetReset.ERROR: "error"}

# librdkafka's own defaults read 64 MiB and 100,000 records ahead of us and wait a second when that is full. The
# engine buffers already: a shallow queue that is refilled at once keeps a pod small.
_CONSUMER_DEFAULTS: dict[str, Any] = {
    "queued.min.messages": 20_000,
    "queued.max.messages.kbytes": 16_384,
    "fetch.queue.backoff.ms": 20,
    "fetch.wait.max.ms": 100,
    # One fetch's records come in one piece: half a megabyte of small ones fits a partition's buffer without a pause.
    "max.partition.fetch.bytes": 524_288,
    "reconnect.backoff.max.ms": 2_000,
}
_PRODUCER_DEFAULTS: dict[str, Any] = {
    "partitioner": "murmur2_random",  # the Java client's: the same key lands on the same partition
    "linger.ms": 5,
    "delivery.timeout.ms": 120_000,
    "reconnect.backoff.max.ms": 2_000,
}


def common_config(settings: StaticSettings, member: str) -> dict[str, Any]:
    """Return what every client of this member shares."""
    return {
        **settings.kafka.config,
        "bootstrap.servers": settings.kafka.bootstrap_servers,
        "client.id": member,
        "log_level": 4,
    }


def consumer_config(settings: StaticSettings, member: str) -> dict[str, Any]:
    """Return the properties of the member's consumer.

    Args:
        settings: the static half.
        member: the pod's name, which becomes group.instance.id.
    """
    session_ms = round(settings.kafka.session_timeout * 1000)
    config = {
        **_CONSUMER_DEFAULTS,
        **common_config(settings, member),
        **settings.kafka.consumer_config,
        "group.id": settings.kafka.group_id,
        "group.instance.id": member,
        "session.timeout.ms": session_ms,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": _RESET[settings.kafka.auto_offset_reset],
        "partition.assignment.strategy": "cooperative-sticky",
        "enable.partition.eof": False,
        "logger": logging.getLogger("librdkafka.consumer"),
    }
    config.setdefault("heartbeat.interval.ms", min(3000, session_ms // 3))
    if settings.kafka.topic_pattern is not None:
        config.setdefault("topic.metadata.refresh.interval.ms", 10_000)
    return config


def producer_config(settings: StaticSettings, member: str) -> dict[str, Any]:
    """Return the properties of the member's producer: idempotent, acknowledged by all replicas."""
    return {
        **_PRODUCER_DEFAULTS,
        **common_config(settings, member),
        **settings.kafka.producer_config,
        "enable.idempotence": True,
        "acks": "all",
        "logger": logging.getLogger("librdkafka.producer"),
    }
