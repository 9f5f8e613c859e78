"""The handler under measure: waits as long as the environment says, and counts."""

import asyncio
import os

from benchmarks.meter import WORK_MS_ENV, Meter
from parallel_consumer_runtime.handlers import Context, Record, Result

_meter = Meter()
_work_s = float(os.environ[WORK_MS_ENV]) / 1000


async def work(record: Record, context: Context) -> None:  # noqa: ARG001 - a handler's signature
    """Wait, or with 0 ms do nothing at all."""
    begun_at = _meter.begin()
    if _work_s:
        await asyncio.sleep(_work_s)
    _meter.end(begun_at)


async def work_with_result(record: Record, context: Context) -> Result:
    """Do the same and return one result, as large as the record."""
    await work(record, context)
    return context.result(key=record.key, value=record.value)
