"""Before a member joins: the brokers answer and the topics exist, or one clear sentence says which field is wrong."""

from collections.abc import Iterable

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from parallel_consumer_runtime.errors import PermanentError, TemporaryError
from parallel_consumer_runtime.kafka.config import common_config
from parallel_consumer_runtime.settings import StaticSettings

BROKER_TIMEOUT_S = 10.0


def check(settings: StaticSettings, member: str) -> None:
    """Blocks up to 10 s.

    Raises:
        TemporaryError: no broker answers.
        PermanentError: a topic does not exist, or librdkafka refuses a property.
    """
    try:
        admin = AdminClient({**common_config(settings, member), "log_level": 0})
    except KafkaException as error:
        msg = f"spec.kafka.config: {error.args[0].str()}"
        raise PermanentError(msg) from error
    try:
        existing = admin.list_topics(timeout=BROKER_TIMEOUT_S).topics
    except KafkaException as error:
        msg = (
            f"spec.kafka.bootstrapServers: no broker answers at {settings.kafka.bootstrap_servers!r} within "
            f"{BROKER_TIMEOUT_S:g} s ({error.args[0].str()}); check the address, and that the brokers run"
        )
        raise TemporaryError(msg) from error
    for field, topic in _topics(settings):
        if topic not in existing:
            msg = f"{field}: the topic {topic!r} does not exist; create it or correct the name"
            raise PermanentError(msg)


def _topics(settings: StaticSettings) -> Iterable[tuple[str, str]]:
    for index, topic in enumerate(settings.kafka.topics or []):
        yield f"spec.kafka.topics[{index}]", topic
    if settings.results_topic is not None:
        yield "spec.results.topic", settings.results_topic
    if settings.dead_letter is not None:
        yield "spec.processing.deadLetter.topic", settings.dead_letter.topic
    if settings.retry_topic is not None:
        yield "spec.processing.retryTopic.topic", settings.retry_topic.topic
