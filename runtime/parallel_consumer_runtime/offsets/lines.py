"""The codec for people: lines of `BASE METADATA` become JSON, and JSON becomes metadata."""

import json
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from parallel_consumer_runtime.offsets.codec import decode, encode
from parallel_consumer_runtime.offsets.maps import OffsetMap


class Line(NamedTuple):
    """One line of output."""

    text: str
    good: bool
    """False when the line of input could not be read; the text says why."""


def decode_lines(lines: Iterable[str]) -> Iterator[Line]:
    """Yield `{"base":…,"highest":…,"incomplete":[[first,last],…]}` for each `BASE METADATA`; ranges are inclusive."""
    for line in lines:
        base, _, metadata = line.strip().partition(" ")
        try:
            found = decode(metadata.strip(), _offset(base))
        except ValueError as error:
            yield _error(error)
        else:
            yield Line(
                _dump(
                    {"base": found.base, "highest": found.highest, "incomplete": [list(r) for r in found.incomplete]}
                ),
                good=True,
            )


def encode_lines(lines: Iterable[str]) -> Iterator[Line]:
    """Yield the metadata for each line of JSON as `decode_lines` writes it."""
    for line in lines:
        try:
            document = json.loads(line)
            incomplete = tuple((int(first), int(last)) for first, last in document["incomplete"])
            metadata = encode(OffsetMap(int(document["base"]), int(document["highest"]), incomplete))
        except (ValueError, KeyError, TypeError, OverflowError, MemoryError, RecursionError) as error:
            yield _error(error)
        else:
            yield Line(metadata, good=True)


def _offset(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        msg = f"a line is BASE METADATA, and {text[:40]!r} is no offset"
        raise ValueError(msg)
    return int(text[:20])


def _error(error: Exception) -> Line:
    reason = f"the field {error} is missing" if isinstance(error, KeyError) else str(error)
    return Line(_dump({"error": reason}), good=False)


def _dump(document: object) -> str:
    return json.dumps(document, separators=(",", ":"))
