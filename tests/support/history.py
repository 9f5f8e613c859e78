"""An append-only history of what processes did: written before the effect it records, so that kill -9 hides nothing.

One line per event, words apart by one space; every writer appends to one file in a single `write`, so the file's order
is an order in which things happened. Times are monotonic nanoseconds, which all processes of a machine share.
"""

import os
import time
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple, Self
from urllib.parse import quote, unquote

KEYLESS = "-"


class Outcome(StrEnum):
    """How a handler call ended."""

    DONE = "done"
    FAILED = "failed"
    UNKNOWN = "unknown"
    """It may have had its effect, or not."""


class Fault(StrEnum):
    """What was done to a member from outside."""

    KILL = "kill"
    TERM = "term"
    STOP = "stop"


class Position(NamedTuple):
    """One record of a topic."""

    topic: str
    partition: int
    offset: int


class Life(NamedTuple):
    """One process's life under a member's name; a restart is another incarnation."""

    member: str
    incarnation: str


class Produced(NamedTuple):
    """The broker acknowledged a record."""

    at: Position
    key: str | None


class Start(NamedTuple):
    """A handler is about to be called."""

    life: Life
    at: Position
    key: str | None
    time_ns: int


class End(NamedTuple):
    """A handler's call is over, and is about to be reported as such."""

    life: Life
    at: Position
    outcome: Outcome
    time_ns: int


class Committed(NamedTuple):
    """The broker was seen to hold this committed offset."""

    at: Position
    """The offset is the committed one: the lowest that is not complete."""
    generation: int
    time_ns: int


class Faulted(NamedTuple):
    """A signal is about to be sent."""

    life: Life
    fault: Fault
    time_ns: int


class Ended(NamedTuple):
    """The process is gone and was reaped."""

    life: Life
    time_ns: int


class Assigned(NamedTuple):
    """A member got a partition."""

    life: Life
    topic: str
    partition: int
    time_ns: int


class Revoked(NamedTuple):
    """A member gave up, or lost, a partition."""

    life: Life
    topic: str
    partition: int
    time_ns: int


Event = Produced | Start | End | Committed | Faulted | Ended | Assigned | Revoked


def format_event(event: Event) -> str:
    """Return the event's line, with its end of line."""
    words: tuple[object, ...]
    match event:
        case Produced(at, key):
            words = ("P", *at, _key_word(key))
        case Start(life, at, key, time_ns):
            words = ("S", *life, *at, _key_word(key), time_ns)
        case End(life, at, outcome, time_ns):
            words = ("E", *life, *at, outcome, time_ns)
        case Committed(at, generation, time_ns):
            words = ("C", *at, generation, time_ns)
        case Faulted(life, fault, time_ns):
            words = ("F", *life, fault, time_ns)
        case Ended(life, time_ns):
            words = ("D", *life, time_ns)
        case Assigned(life, topic, partition, time_ns):
            words = ("A", *life, topic, partition, time_ns)
        case Revoked(life, topic, partition, time_ns):
            words = ("R", *life, topic, partition, time_ns)
    return " ".join(map(str, words)) + "\n"


def parse_history(text: str) -> list[Event]:
    """Return the events in the order in which they were written.

    Raises:
        ValueError: a line is not one that `format_event` writes; names its number.
    """
    events: list[Event] = []
    lives: dict[tuple[str, str], Life] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split(" ")
        try:
            events.append(_parse(words, lives))
        except (ValueError, IndexError, TypeError) as error:
            raise ValueError(f"line {number} is no event: {line!r} ({error})") from error
    return events


def read_history(path: Path) -> list[Event]:
    """Parse a history file."""
    return parse_history(path.read_text())


def read_so_far(path: Path) -> list[Event]:
    """Parse a history file that others still write: without a last line that is only half there yet."""
    text = path.read_text()
    return parse_history(text[: text.rfind("\n") + 1])


class HistoryWriter:
    """Appends events to a file; each call is one `write`. Any thread and any number of processes may write.

    Args:
        path: the file; created when missing.
    """

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def write(self, event: Event) -> None:
        """Append one event."""
        os.write(self._file, format_event(event).encode())

    def write_all(self, events: Iterable[Event], *, chunk: int = 1000) -> None:
        """Append many events, in chunks; others may write between two chunks."""
        for lines in _chunks(map(format_event, events), chunk):
            os.write(self._file, "".join(lines).encode())

    def fault(self, life: Life, fault: Fault) -> None:
        """Say that a signal is about to be sent."""
        self.write(Faulted(life, fault, time.monotonic_ns()))

    def ended(self, life: Life) -> None:
        """Say that a process was reaped."""
        self.write(Ended(life, time.monotonic_ns()))

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _parse(words: list[str], lives: dict[tuple[str, str], Life]) -> Event:
    kind = words[0]
    if kind in {"P", "C"}:
        return _parse_broker(words)
    names = (words[1], words[2])
    life = lives.get(names) or lives.setdefault(names, Life(*names))
    if kind in {"S", "E"}:
        _, _, _, topic, partition, offset, said, time_ns = words
        at = Position(topic, int(partition), int(offset))
        return Start(life, at, _key(said), int(time_ns)) if kind == "S" else End(life, at, Outcome(said), int(time_ns))
    return _parse_life(words, life)


def _parse_broker(words: list[str]) -> Event:
    if words[0] == "P":
        _, topic, partition, offset, key = words
        return Produced(Position(topic, int(partition), int(offset)), _key(key))
    _, topic, partition, offset, generation, time_ns = words
    return Committed(Position(topic, int(partition), int(offset)), int(generation), int(time_ns))


def _parse_life(words: list[str], life: Life) -> Event:
    kind = words[0]
    if kind == "F":
        _, _, _, fault, time_ns = words
        return Faulted(life, Fault(fault), int(time_ns))
    if kind == "D":
        _, _, _, time_ns = words
        return Ended(life, int(time_ns))
    _, _, _, topic, partition, time_ns = words
    if kind == "A":
        return Assigned(life, topic, int(partition), int(time_ns))
    if kind == "R":
        return Revoked(life, topic, int(partition), int(time_ns))
    raise ValueError("unknown kind")


def _key_word(key: str | None) -> str:
    return KEYLESS if key is None else "=" + quote(key)


def _key(word: str) -> str | None:
    if word == KEYLESS:
        return None
    if not word.startswith("="):
        raise ValueError("a key begins with =")
    return unquote(word[1:]) if "%" in word else word[1:]


def _chunks(lines: Iterable[str], size: int) -> Iterator[list[str]]:
    chunk: list[str] = []
    for line in lines:
        chunk.append(line)
        if len(chunk) >= size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
