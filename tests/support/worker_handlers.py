"""Handlers for the suite over every worker: importable, because processes import them for themselves.

They keep nothing in memory that a test would read: what they saw is in files, which the record's value names.
"""

import asyncio
import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from parallel_consumer_runtime.handlers import Context, DeadLetter, Record, Result, Retry, Skip

POLL_S = 0.002


def _path(record: Record) -> Path:
    assert record.value is not None
    return Path(os.fsdecode(record.value))


def note(record: Record, _context: Context) -> None:
    """Append the offset to the file that the value names; one write, so that lines of several processes stay whole."""
    fd = os.open(_path(record), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(fd, f"{record.offset}\n".encode())
    finally:
        os.close(fd)


def wait_for_file(record: Record, _context: Context) -> None:
    """Return once the file exists that the value names."""
    while not _path(record).exists():
        time.sleep(POLL_S)


async def wait_for_file_async(record: Record, _context: Context) -> None:
    """Return once the file exists that the value names, on the event loop."""
    while not _path(record).exists():  # noqa: ASYNC110 - a file signals nothing
        await asyncio.sleep(POLL_S)


def raise_at_three(record: Record, _context: Context) -> None:
    """Raise at offset 3 what the value names."""
    if record.offset == 3:
        raise_named(record)


def raise_named(record: Record) -> NoReturn:
    """Raise an exception of the class that the value names."""
    raise {
        b"ValueError": ValueError("x"),
        b"SystemExit": SystemExit(3),
        b"KeyboardInterrupt": KeyboardInterrupt(),
        b"RecursionError": RecursionError(),
        b"MemoryError": MemoryError(),
        b"Retry": Retry(after_s=1.5, reason="later"),
        b"Skip": Skip("not for us"),
        b"DeadLetter": DeadLetter("hopeless"),
    }[record.value or b""]


def with_results(record: Record, context: Context) -> list[Result]:
    """Return two results: who called, and the record's key and value."""
    return [
        context.result(key=f"{context.member}/{context.attempt}", value=None, partition=1),
        context.result(key=record.key, value=record.value, headers=[("topic", record.topic), ("raw", b"\xff")]),
    ]


class _WordlessError(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


def _raise(error: BaseException) -> NoReturn:
    raise error


def _recurse(depth: int = 0) -> int:
    return _recurse(depth + 1) + 1


def _hang() -> NoReturn:
    while True:  # not even SystemExit ends it
        try:
            time.sleep(60)
        except BaseException:  # noqa: BLE001 - it is a hang that the worker must end
            continue


_POISON: dict[bytes | None, Callable[[], object]] = {
    b"exit": lambda: os._exit(3),
    b"exit-well": lambda: os._exit(0),
    b"segfault": lambda: ctypes.string_at(0),
    b"killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    b"raises": lambda: _raise(ValueError("this record is poison")),
    b"system-exit": lambda: sys.exit("enough"),
    b"recursion": _recurse,
    b"memory": lambda: bytearray(1 << 62),
    b"wordless": lambda: _raise(_WordlessError()),
    b"surrogates": lambda: _raise(ValueError(b"\xff\xfe".decode("utf-8", "surrogateescape"))),
    b"strange-return": object,
    b"surrogate-result": lambda: Result(None, b"\xff".decode("utf-8", "surrogateescape"), (), None),
    b"strange-result": lambda: Result(object(), None, (), None),  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    b"\xff\xfe": b"\xff\xfe".decode,
    None: lambda: _raise(TypeError("a tombstone is nothing to handle")),
    b"hang": _hang,
}


def harm_of(record: Record) -> Callable[[], object] | None:
    """Return what the value asks for, None when it is harmless."""
    return _POISON.get(record.value)


def poison(record: Record, context: Context) -> object:
    """Do what the value says; note a record whose value is a path; of any other, return who handled it."""
    if (harm := harm_of(record)) is not None:
        return harm()
    if (record.value or b"").startswith(b"/"):
        note(record, context)
        return None
    return context.result(value=str(os.getpid()))


def pause(_record: Record, _context: Context) -> None:
    """Take 30 ms."""
    time.sleep(0.03)


def size_of(record: Record, context: Context) -> Result:
    """Return the value's length, and the value."""
    return context.result(key=str(len(record.value or b"")), value=record.value)


def wait_and_clean_up(record: Record, _context: Context) -> None:
    """Say so in the folder that the value names, wait to be told to end, and say that it was."""
    (_path(record) / "begun").touch()
    try:
        time.sleep(60)
    finally:
        time.sleep(0.1)
        (_path(record) / "cleaned-up").touch()


def batch_poison(records: Sequence[Record], context: Context) -> list[object]:
    """Return an outcome for each record: what it raises as an error, a result for the others; what kills, kills all."""
    outcomes: list[object] = []
    for record in records:
        try:
            outcomes.append(poison(record, context))
        except Exception as error:  # noqa: BLE001 - an outcome of this record alone
            outcomes.append(error)
    return outcomes
