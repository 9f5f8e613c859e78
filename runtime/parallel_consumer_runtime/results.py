"""What a handler returned becomes records to produce, or an error that says what is wrong with it.

Keeps: what passes can be produced, as far as it can be known here. Users' handlers are not all type-checked, and a
producer that raises in the middle of settling a record would leave it neither done nor failed.
"""

from collections.abc import Callable, Iterable
from typing import cast

from parallel_consumer_runtime.core import Task
from parallel_consumer_runtime.handlers import Result

_PARTITION_MAX = 2**31 - 1


def checked(returned: object) -> list[Result]:
    """Return the results, their fields of exactly the types that they are kinds of.

    Raises:
        Exception: what a handler's generator raises, or that something is no result or no field of one.
    """
    results = [returned] if isinstance(returned, Result) else list(cast("Iterable[object]", returned))
    return [_checked(result) for result in results]


def _checked(result: object) -> Result:
    if not isinstance(result, Result):
        msg = f"the handler returned {type(result).__name__}: return context.result(…) or None"
        raise TypeError(msg)
    headers = [(_name(name), _field("header", value)) for name, value in result.headers] if result.headers else ()
    return Result(_field("key", result.key), _field("value", result.value), headers, _partition(result.partition))


def _field(name: str, value: object) -> str | bytes | None:
    if value is None or type(value) is bytes:
        return value
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bytes | bytearray):
        return bytes(value)
    msg = f"a result's {name} is of type {type(value).__name__}: give bytes, str or None"
    raise TypeError(msg)


def _name(name: object) -> str:
    if isinstance(name, str):
        return _text(name)
    msg = f"the name of a result's header is of type {type(name).__name__}: give str"
    raise TypeError(msg)


def _text(text: str) -> str:
    """Return text that is surely encodable; half a surrogate pair, from bytes that were no UTF-8, is not."""
    text = str.__str__(text)
    if not text.isascii():
        text.encode()
    return text


def _partition(partition: object) -> int | None:
    if partition is None:
        return None
    if isinstance(partition, int) and 0 <= partition <= _PARTITION_MAX:
        return int(partition)
    msg = f"a result's partition is {partition!r}: give a number from 0, or None"
    raise TypeError(msg)


class Refusals:
    """Remembers records whose results the broker refused, over rewinds: their next results are a failed attempt.

    Without that, a result that is too large would abort transaction after transaction. Bounded: the oldest is forgotten.

    Args:
        most: how many there may be: no more than records that may be buffered have a next result to come.
    """

    def __init__(self, most: Callable[[], int]) -> None:
        self.most = most
        self._words: dict[tuple[str, int, int], str] = {}

    def remember(self, task: Task, words: str) -> None:
        """Note why the record's results were refused."""
        self._words.pop(_place(task), None)
        while len(self._words) >= self.most():
            del self._words[next(iter(self._words))]
        self._words[_place(task)] = words

    def __len__(self) -> int:
        """Return how many are remembered."""
        return len(self._words)

    def of(self, task: Task) -> str | None:
        """Return why the record's results were refused, None when they were not."""
        return self._words.get(_place(task)) if self._words else None


def _place(task: Task) -> tuple[str, int, int]:
    record = task.record
    return record.topic, record.partition, record.offset
