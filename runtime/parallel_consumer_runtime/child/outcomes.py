"""A handler's outcome as plain data, there and back: results, and what was raised.

Keeps: no exception class of a handler's is made again in the member; what it was is told by name, words and traceback.
"""

import traceback
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, cast

from parallel_consumer_runtime.handlers import DeadLetter, Result, Retry, Skip
from parallel_consumer_runtime.results import checked
from parallel_consumer_runtime.wording import words_of

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
    return (_RETURNED, [tuple(result) for result in checked(returned)])


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
    message = words_of(error)[:_TEXT_MAX]
    try:
        if isinstance(error, Retry):
            return (_RETRY, None if error.after_s is None else float(error.after_s), message)
        if isinstance(error, Skip):
            return (_SKIP, message)
        if isinstance(error, DeadLetter):
            return (_DEAD_LETTER, message)
        told_traceback = "".join(traceback.format_exception(error))[-_TEXT_MAX:]
        return (_RAISED, type(error).__name__, message, told_traceback)
    except BaseException as second:  # noqa: BLE001 - a delay that is no number, or no memory left for a traceback
        return (_RAISED, type(error).__name__, f"{message} (and telling it: {words_of(second)[:_TEXT_MAX]})", "")


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
