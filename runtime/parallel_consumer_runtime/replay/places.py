"""Pure: how a person names a place in a log, and which offset that is: `earliest`, `latest`, `offset:N`, a time, a shift."""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from typing import NamedTuple

from parallel_consumer_runtime.errors import PermanentError
from parallel_consumer_runtime.kafka.logs import LogBounds


class Kind(Enum):
    """What a place is measured from."""

    EARLIEST = auto()
    LATEST = auto()
    OFFSET = auto()
    TIME = auto()
    SHIFT = auto()


@dataclass(frozen=True, slots=True)
class Place:
    """A place in every partition's log."""

    kind: Kind
    value: int = 0
    """An offset, Unix milliseconds, or a count of offsets from the committed one; 0 for the others."""


class Resolved(NamedTuple):
    """A place in one partition."""

    offset: int
    """Inside the log, or at its end."""
    note: str
    """What a person should know about how it was found; mostly empty."""


def parse_place(text: str, option: str) -> Place:
    """Return the place that `earliest`, `latest`, `offset:N` or an ISO time names.

    Args:
        text: as the user wrote it.
        option: the option's name, for the message.

    Raises:
        PermanentError: naming the option and the forms that are understood.
    """
    word, _, number = text.partition(":")
    if text == "earliest":
        return Place(Kind.EARLIEST)
    if text == "latest":
        return Place(Kind.LATEST)
    if word == "offset":
        if not (number.isascii() and number.isdigit() and len(number) < 20):  # noqa: PLR2004 - the digits of 2^63
            raise PermanentError(
                f"{option}: {number!r} is no offset; write offset:N with a number that is not negative"
            )
        return Place(Kind.OFFSET, int(number))
    return parse_time(text, option)


def parse_time(text: str, option: str) -> Place:
    """Return the place that an ISO time with a zone names.

    Raises:
        PermanentError: naming the option and the form that is expected.
    """
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        others = "" if option == "--to-time" else "earliest, latest, offset:N or "
        msg = f"{option}: {text!r} is not understood; write {others}a time such as 2026-01-02T03:04:05Z"
        raise PermanentError(msg) from None
    if when.tzinfo is None:
        raise PermanentError(f"{option}: {text!r} has no zone; append Z for UTC, or an offset such as +02:00")
    return Place(Kind.TIME, round(when.timestamp() * 1000))


def resolve(place: Place, log: LogBounds, at_time: int | None = None, committed: int | None = None) -> Resolved | None:
    """Return the offset of a place in one partition, clamped to the log.

    Args:
        place: what was asked for.
        log: what the partition holds.
        at_time: for a time, the first offset that is not older; None when all are older.
        committed: for a shift, the committed offset.

    Returns:
        None for a shift where nothing is committed: there is nothing to count from.
    """
    match place.kind:
        case Kind.EARLIEST:
            return Resolved(log.start, "")
        case Kind.LATEST:
            return Resolved(log.end, "")
        case Kind.TIME:
            if at_time is None:
                return Resolved(log.end, "every record is older: the log's end")
            return _clamped(at_time, log)
        case Kind.OFFSET:
            return _clamped(place.value, log)
        case Kind.SHIFT:
            return None if committed is None else _clamped(committed + place.value, log)


def _clamped(offset: int, log: LogBounds) -> Resolved:
    if offset < log.start:
        return Resolved(log.start, f"{offset} is gone: the log's start")
    if offset > log.end:
        return Resolved(log.end, f"{offset} is not there yet: the log's end")
    return Resolved(offset, "")
