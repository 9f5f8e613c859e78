"""What a result says of itself: headers that name the record it was made of. Copies of one, made twice, name the same."""

from collections.abc import Sequence

from parallel_consumer_runtime.core import Task
from parallel_consumer_runtime.handlers import Result
from parallel_consumer_runtime.retry_topic import origin

PREFIX = "parallel-consumer-result-"


def with_provenance(results: Sequence[Result], task: Task, attempts: int, now: float) -> list[Result]:
    """Return results with headers that say what they were made of.

    Args:
        results: of one record.
        task: the record.
        attempts: calls of the handler, those before it was in the retry topic included.
        now: Unix time, seconds.
    """
    record = origin(task.record)
    told = (
        (PREFIX + "topic", record.topic),
        (PREFIX + "partition", str(record.partition)),
        (PREFIX + "offset", str(record.offset)),
        (PREFIX + "timestamp-ms", str(record.timestamp_ms)),
        (PREFIX + "attempts", str(attempts)),
        (PREFIX + "at-ms", str(round(now * 1000))),
    )
    return [
        result._replace(headers=[*result.headers, *told, (PREFIX + "index", str(index))])
        for index, result in enumerate(results)
    ]
