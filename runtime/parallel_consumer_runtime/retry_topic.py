"""What a record looks like in the retry topic: as it was, and headers that say where from, how often, not before when."""

import math
from collections.abc import Callable

from parallel_consumer_runtime.core import RetryPolicy, Task
from parallel_consumer_runtime.handlers import Headers, Record, Result
from parallel_consumer_runtime.settings import RetryTopicSpec

PREFIX = "parallel-consumer-retry-"
NOT_BEFORE = PREFIX + "not-before-ms"
_ATTEMPTS = PREFIX + "attempts"
_ROUNDS = PREFIX + "rounds"
_TOPIC, _PARTITION, _OFFSET, _TIMESTAMP = (PREFIX + name for name in ("topic", "partition", "offset", "timestamp-ms"))


def header(headers: Headers, name: str) -> str | None:
    """Return the last header of a name as text, None when there is none or it is no text."""
    for found, value in reversed(headers):
        if found == name and value is not None:
            return value.decode("ascii", "replace")
    return None


def whole_number(headers: Headers, name: str) -> int | None:
    """Return a header as a number, None when there is none or it is no number."""
    text = header(headers, name)
    return int(text) if text is not None and text.isdigit() else None


def attempts_before(record: Record) -> int:
    """Return how many calls a record had before it went to the retry topic; 0 for one that never did."""
    return (whole_number(record.headers, _ATTEMPTS) or 0) if record.headers else 0


def origin(record: Record) -> Record:
    """Return the record with the place and the headers that it had before it ever went to the retry topic."""
    headers = record.headers
    topic = header(headers, _TOPIC) if headers else None
    if topic is None:
        return record
    return record._replace(
        topic=topic,
        partition=whole_number(headers, _PARTITION) or 0,
        offset=whole_number(headers, _OFFSET) or 0,
        timestamp_ms=whole_number(headers, _TIMESTAMP) or 0,
        headers=tuple(item for item in headers if not item[0].startswith(PREFIX)),
    )


def retry_record(task: Task, error: BaseException, spec: RetryTopicSpec, jitter: float, now: float) -> Result:
    """Return the record for the retry topic.

    Args:
        task: the record and its attempts.
        error: what the last attempt raised.
        spec: how long it waits.
        jitter: a random number in [0, 1), which spreads the waiting over its upper half.
        now: Unix time, seconds.
    """
    record = task.record
    first = origin(record)
    rounds = (whole_number(record.headers, _ROUNDS) or 0) + 1
    wait_s = RetryPolicy(0, spec.initial_backoff, spec.max_backoff).backoff_s(rounds, jitter)
    told = {
        _TOPIC: first.topic,
        _PARTITION: str(first.partition),
        _OFFSET: str(first.offset),
        _TIMESTAMP: str(max(0, first.timestamp_ms)),
        _ATTEMPTS: str(attempts_before(record) + task.attempt),
        _ROUNDS: str(rounds),
        NOT_BEFORE: str(round((now + wait_s) * 1000)),
        PREFIX + "error": type(error).__name__,
    }
    return Result(
        record.key, record.value, [*first.headers, *((name, value.encode()) for name, value in told.items())], None
    )


class Schedule:
    """Reads from its headers when a record may start.

    Args:
        names: headers that hold milliseconds since 1970; the latest of them counts.
        monotonic: the clock of what it returns, seconds.
        wall: the clock of the headers, Unix time in seconds.
    """

    def __init__(self, names: tuple[str, ...], monotonic: Callable[[], float], wall: Callable[[], float]) -> None:
        self._names = names
        self._monotonic = monotonic
        self._wall = wall
        self.unreadable = 0
        """Headers that were no number: their records start at once."""

    def __call__(self, record: Record) -> float:
        """Return the monotonic time before which the record may not start, -inf when it may at once."""
        if not record.headers:
            return -math.inf
        at = -math.inf
        for name in self._names:
            if (text := header(record.headers, name)) is not None:
                if text.isdigit():
                    at = max(at, int(text) / 1000 - self._wall() + self._monotonic())
                else:
                    self.unreadable += 1
        return at
