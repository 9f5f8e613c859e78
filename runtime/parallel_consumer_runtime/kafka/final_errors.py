"""Which of the client's errors end the member, and in what words; and what to do about others."""

from confluent_kafka import KafkaError

from parallel_consumer_runtime.errors import PermanentError, TemporaryError

_FENCED = KafkaError(KafkaError.FENCED_INSTANCE_ID).str()
_ADVICE = {
    KafkaError.INCONSISTENT_GROUP_PROTOCOL: "; the group's other members share no assignor with this one: let spec.kafka.assignor "
    "and spec.kafka.groupProtocol be theirs",
    KafkaError.UNKNOWN_TOPIC_OR_PART: "; create the topic, or mend spec.kafka.topics",
}


def advice(error: KafkaError) -> str:
    """Return what follows an error that the client tries to outlive: what to look at, as far as that is known."""
    return _ADVICE.get(error.code(), "")


def raise_if_final(error: KafkaError, instance: str) -> None:
    """Return when the client goes on by itself.

    Args:
        error: what the client reported.
        instance: the member's group.instance.id.

    Raises:
        PermanentError: another start ends the same.
        TemporaryError: another start may succeed.
    """
    code = error.code()
    if code == KafkaError._AUTO_OFFSET_RESET:  # noqa: SLF001 - librdkafka's local codes have this form
        msg = (
            f"the group has no usable committed offset and spec.kafka.autoOffsetReset is Error ({error.str()}); "
            "commit one with `pconsumer offsets reset`, or choose Earliest or Latest"
        )
        raise PermanentError(msg)
    # poll() tells a fatal error under one code for all; only its text then says which one it was.
    fatal = error.fatal() or code == KafkaError._FATAL  # noqa: SLF001 - as above
    if code == KafkaError.FENCED_INSTANCE_ID or (fatal and _FENCED in error.str()):
        msg = f"another process took this member's instance id {instance!r}; only one may run"
        raise TemporaryError(msg)
    if code in {KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED}:
        msg = f"the broker refuses access: {error.str()}"
        raise PermanentError(msg)
    if fatal:
        msg = f"the Kafka client ended: {error.str()}"
        raise TemporaryError(msg)
