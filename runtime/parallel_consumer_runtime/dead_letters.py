"""What a dead letter looks like: the record as it was, and headers that say where from, when and why."""

from parallel_consumer_runtime.core import Task
from parallel_consumer_runtime.handlers import Result
from parallel_consumer_runtime.retry_topic import origin
from parallel_consumer_runtime.wording import words_of

PREFIX = "parallel-consumer-dead-letter-"
_MESSAGE_MAX = 1024


def dead_letter(task: Task, error: BaseException, member: str, now: float, attempts: int) -> Result:
    """Return the record for the dead-letter topic.

    Args:
        task: the record and its attempts.
        error: what the last attempt raised.
        member: who gave it up.
        now: Unix time, seconds.
        attempts: calls of the handler, those before it was in the retry topic included.
    """
    record = origin(task.record)
    provenance = {
        "topic": record.topic,
        "partition": str(record.partition),
        "offset": str(record.offset),
        "timestamp-ms": str(record.timestamp_ms),
        "attempts": str(attempts),
        "error": type(error).__name__,
        "message": words_of(error)[:_MESSAGE_MAX],
        "member": member,
        "at-ms": str(round(now * 1000)),
    }
    headers = [*record.headers, *((PREFIX + name, value.encode()) for name, value in provenance.items())]
    return Result(record.key, record.value, headers, None)
