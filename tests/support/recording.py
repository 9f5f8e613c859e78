"""Handlers that write their history: stateless, one line before a call's work and one after it.

Named in manifests as `tests.support.recording:on_record`. What they do is set by environment variables, because they
run in members' processes.
"""

import asyncio
import logging
import os
import re
import time
from collections.abc import Mapping
from pathlib import Path

from parallel_consumer_runtime.handlers import Context, Record, Result
from parallel_consumer_runtime.settings import POD_NAME_ENV
from tests.support.history import Assigned, End, HistoryWriter, Life, Outcome, Position, Revoked, Start

HISTORY_ENV = "PCONSUMER_TEST_HISTORY"
INCARNATION_ENV = "PCONSUMER_TEST_INCARNATION"
WORK_MS_ENV = "PCONSUMER_TEST_WORK_MS"


def environment(history: Path, incarnation: str, work_ms: float) -> Mapping[str, str]:
    """Return the variables that the handlers read.

    Args:
        history: the file that every member appends to.
        incarnation: what tells this process from others of the same name.
        work_ms: how long each call waits.
    """
    return {HISTORY_ENV: str(history), INCARNATION_ENV: incarnation, WORK_MS_ENV: str(work_ms)}


_work_s = float(os.environ.get(WORK_MS_ENV, "5")) / 1000
_incarnation = os.environ.get(INCARNATION_ENV, "0")
_writer = HistoryWriter(Path(os.environ.get(HISTORY_ENV, os.devnull)))


class _Assignments(logging.Handler):
    """Writes assignments as the member tells them: on the thread of the calls, so in order with them."""

    told = re.compile(r"(assigned|revoked|lost): (.*)")
    partition = re.compile(r"(?:^|, )([^\[\s]+)\[(\d+)\]")

    def emit(self, record: logging.LogRecord) -> None:
        """Write one event for each partition of the line."""
        if (told := self.told.fullmatch(record.getMessage())) is not None:
            life = Life(os.environ.get(POD_NAME_ENV, "nobody"), _incarnation)
            event = Assigned if told[1] == "assigned" else Revoked
            now = time.monotonic_ns()
            _writer.write_all(event(life, topic, int(number), now) for topic, number in self.partition.findall(told[2]))


if HISTORY_ENV in os.environ:
    logging.getLogger("parallel_consumer_runtime.member").addHandler(_Assignments())


def _begin(record: Record, member: str) -> None:
    key = None if record.key is None else record.key.decode()
    at = Position(record.topic, record.partition, record.offset)
    _writer.write(Start(Life(member, _incarnation), at, key, time.monotonic_ns()))


def _end(record: Record, member: str, outcome: Outcome) -> None:
    at = Position(record.topic, record.partition, record.offset)
    _writer.write(End(Life(member, _incarnation), at, outcome, time.monotonic_ns()))


async def on_record(record: Record, context: Context) -> None:
    """Wait as long as the environment says."""
    _begin(record, context.member)
    await asyncio.sleep(_work_s)
    _end(record, context.member, Outcome.DONE)


def on_record_in_thread(record: Record, context: Context) -> None:
    """Wait as long as the environment says, on a thread."""
    _begin(record, context.member)
    time.sleep(_work_s)
    _end(record, context.member, Outcome.DONE)


async def with_result(record: Record, context: Context) -> Result:
    """Return the record's value under its key, with its offset as a header."""
    _begin(record, context.member)
    await asyncio.sleep(_work_s)
    _end(record, context.member, Outcome.DONE)
    return context.result(key=record.key, value=record.value, headers=[("offset", str(record.offset))])


async def fail_on_poison(record: Record, context: Context) -> None:
    """Raise for records whose value is `poison`, every time."""
    _begin(record, context.member)
    await asyncio.sleep(_work_s)
    if record.value == b"poison":
        _end(record, context.member, Outcome.FAILED)
        raise ValueError("this record is poison")
    _end(record, context.member, Outcome.DONE)


async def hold_in_first_life(record: Record, context: Context) -> None:
    """Hold records whose value is `hold` for as long as the first process lives; be quick in later ones."""
    _begin(record, context.member)
    await asyncio.sleep(3600 if record.value == b"hold" and _incarnation == "1" else _work_s)
    _end(record, context.member, Outcome.DONE)
