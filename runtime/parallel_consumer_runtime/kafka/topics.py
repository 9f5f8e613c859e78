"""Which partitions a member's topics have now: asked of the brokers, apart from any consumer."""

import re

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from parallel_consumer_runtime.kafka.config import common_config
from parallel_consumer_runtime.settings import StaticSettings

_TIMEOUT_S = 5.0


def partitions(settings: StaticSettings) -> set[tuple[str, int]] | None:
    """Return every (topic, partition) that the group is to consume; None when no broker answers within 5 s."""
    try:
        admin = AdminClient({**common_config(settings, settings.name), "log_level": 0})
        topics = admin.list_topics(timeout=_TIMEOUT_S).topics
    except KafkaException:
        return None
    pattern = settings.kafka.topic_pattern
    names = [name for name in topics if re.match(pattern, name)] if pattern else settings.kafka.topics or []
    return {(name, partition) for name in names if name in topics for partition in topics[name].partitions}
