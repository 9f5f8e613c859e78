"""A handler's outcome as plain data, there and back: results, and what was raised.

Keeps: no exception class of a handler's is made again in the member; what it was is told by name, words and traceback.
"""

import traceback
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, cast

from parallel_consumer_runtime.handlers import DeadLetter, Result, Retry, Skip

_TEXT_MAX = 16 * 1024
"""Characters of a message or a traceback; a dead letter's header holds 1,024."""

_RETURNED, _BATCH, _RETRY, _SKIP, _DEAD_LETTER, _RAISED = range(6)


class HandlerError(Exception):
    """What a handler raised in its own process; the class carries the name that it had there."""

    def __init__(self, message: str, told_traceback: str) -> None:
        super().__init__(message)
        self.told_traceback = told_traceback
        """As text, for the log."""


def of_return(returned: object) -> tuple[object, ...]:
    """Return what a handler of one record returned as plain data. In the handler's process.

    Raises:
        Exception: what a handler's generator raises, or that something else than results was returned.
    """
    if returned is None:
        return (_RETURNED, None)
    results = [returned] if isinstance(returned, Result) else list(cast("Iterable[object]", returned))
    return (_RETURNED, [_plain(result) for result in results])


def of_batch(returned: object) -> tuple[object, ...]:
    """Return what a handler of batches returned as plain data: each record's outcome by itself. In the handler's process.

    Raises:
        TypeError: it is neither None nor a list.
    """
    if returned is None:
        return (_RETURNED, None)
    if not isinstance(returned, Sequence):
        msg = f"the handler returned {type(returned).__name__}: return None or a list with one outcome for each record"
        raise TypeError(msg)
    return (_BATCH, [_of_one(outcome) for outcome in cast("Sequence[object]", returned)])


def _of_one(outcome: object) -> tuple[object, ...]:
    if isinstance(outcome, BaseException):
        return of_error(outcome)
    try:
        return of_return(outcome)
    except Exception as error:  # noqa: BLE001 - one strange outcome is not the other records' failure
        return of_error(error)


def of_error(error: BaseException) -> tuple[object, ...]:
    """Return what a handler raised as plain data, whatever it is. In the handler's process."""
    name = type(error).__name__
    try:
        message = _text(str(error))
        if isinstance(error, Retry):
            return (_RETRY, None if error.after_s is None else float(error.after_s), message)
        if isinstance(error, Skip):
            return (_SKIP, message)
        if isinstance(error, DeadLetter):
            return (_DEAD_LETTER, message)
        return (_RAISED, name, message, _text("".join(traceback.format_exception(error)), last=True))
    except BaseException as second:  # noqa: BLE001 - a __str__ that raises, or no memory left for words
        return (_RAISED, name, f"it cannot be described: {type(second).__name__}", "")


def told(outcome: Sequence[Any]) -> tuple[object, BaseException | None]:
    """Return what was returned, or what was raised. In the member."""
    kind, *rest = outcome
    if kind == _RETURNED:
        (results,) = rest
        return None if results is None else [Result(*result) for result in results], None
    if kind == _BATCH:
        (outcomes,) = rest
        return [returned if error is None else error for returned, error in map(told, outcomes)], None
    if kind == _RETRY:
        return None, Retry(*rest)
    if kind == _SKIP:
        return None, Skip(*rest)
    if kind == _DEAD_LETTER:
        return None, DeadLetter(*rest)
    name, message, told_traceback = rest
    return None, _named(name)(message, told_traceback)


@lru_cache(maxsize=256)
def _named(name: str) -> type[HandlerError]:
    # A class of the same name: logs and dead letters tell the same, wherever the handler ran.
    return type(name, (HandlerError,), {})


def _plain(result: object) -> tuple[object, ...]:
    if not isinstance(result, Result):
        msg = f"the handler returned {type(result).__name__}: return context.result(…) or None"
        raise TypeError(msg)
    headers = [(_field("a header's name", name), _field(f"header {name!r}", value)) for name, value in result.headers]
    if result.partition is not None and not isinstance(result.partition, int):  # pyright: ignore[reportUnnecessaryIsInstance]
        msg = f"a result's partition is of type {type(result.partition).__name__}: give a number or None"
        raise TypeError(msg)
    partition = None if result.partition is None else int(result.partition)
    return (_field("key", result.key), _field("value", result.value), headers, partition)


def _field(name: str, value: object) -> str | bytes | None:
    """Return a field as exactly the type that it is a kind of: marshal knows no subclasses, such as an enum's words."""
    if value is None:
        return None
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bytes | bytearray):
        return bytes(value)
    msg = f"a result's {name} is of type {type(value).__name__}: give bytes, str or None"
    raise TypeError(msg)


def _text(text: str, *, last: bool = False) -> str:
    text = str.__str__(text)
    return text[-_TEXT_MAX:] if last else text[:_TEXT_MAX]
