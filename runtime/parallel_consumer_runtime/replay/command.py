"""`pconsumer replay`: from places to ranges, the handler imported as on a member, progress, and a summary."""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TextIO

import uvloop

from parallel_consumer_runtime.core import PartitionKey
from parallel_consumer_runtime.errors import PermanentError, TemporaryError
from parallel_consumer_runtime.handlers import Handler
from parallel_consumer_runtime.importing import load_handler
from parallel_consumer_runtime.kafka.logs import LogBounds, Logs
from parallel_consumer_runtime.kafka.ranges import reads_committed
from parallel_consumer_runtime.kafka.startup import check
from parallel_consumer_runtime.local.environment import render_env
from parallel_consumer_runtime.replay.offsets_command import choose, load_manifest
from parallel_consumer_runtime.replay.places import Kind, Place, Resolved, parse_place, resolve
from parallel_consumer_runtime.replay.run import Replay, Summary
from parallel_consumer_runtime.settings import (
    ConcurrencySpec,
    LiveSettings,
    ParallelConsumerSpec,
    StaticSettings,
    render_live,
    render_static,
)

PROGRESS_INTERVAL_S = 2.0


def replay(
    path: Path,
    *,
    start: str,
    end: str,
    topic: str | None,
    partitions: Sequence[int],
    concurrency: int | None,
    results: bool,
    bootstrap: str | None,
    handler_path: Path | None,
    out: TextIO = sys.stdout,
    err: TextIO = sys.stderr,
) -> None:
    """Handle a range once more, print progress to `err` and a summary to `out`.

    Raises:
        RuntimeFailure: why it could not, or that it was stopped before the range was complete.
    """
    first, last = parse_place(start, "--from"), parse_place(end, "--to")
    manifest = load_manifest(path, bootstrap)
    settings, live = render_static(manifest.name, manifest.spec), render_live(manifest.spec, 1)
    if concurrency is not None:
        live = live.model_copy(update={"concurrency": ConcurrencySpec(fixed=concurrency)})
    checked = settings if results else settings.model_copy(update={"results_topic": None})
    check(checked, f"{manifest.name}-replay")
    _enter_environment(path, manifest.spec, (handler_path or path.parent).resolve())
    handler = load_handler(settings.handler)
    logs = Logs(settings, committed_only=reads_committed(settings))
    ranges = _ranges(logs, choose(logs.partitions(), topic, partitions), first, last, err)
    logging.basicConfig(level="WARNING", format="%(asctime)s %(levelname)s %(name)s %(message)s", stream=err)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        summary = runner.run(_handle(settings, live, handler, ranges, results=results, err=err))
    out.write(_sentence(summary) + "\n")
    if not summary.whole:
        raise TemporaryError("stopped before every record of the range was complete; start it again for the rest")


async def _handle(
    settings: StaticSettings,
    live: LiveSettings,
    handler: Handler,
    ranges: Mapping[PartitionKey, LogBounds],
    *,
    results: bool,
    err: TextIO,
) -> Summary:
    one = Replay(settings, live, handler, ranges, results=results)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, one.stop)
    offsets = sum(bounds.end - bounds.start for bounds in ranges.values())
    progress = asyncio.create_task(_tell_progress(one, offsets, err))
    try:
        return await one.run()
    finally:
        progress.cancel()


async def _tell_progress(one: Replay, offsets: int, err: TextIO) -> None:
    while True:
        await asyncio.sleep(PROGRESS_INTERVAL_S)
        err.write(f"{one.completed:,} records complete, of {offsets:,} offsets\n")
        err.flush()


def _ranges(
    logs: Logs, keys: Sequence[PartitionKey], first: Place, last: Place, err: TextIO
) -> dict[PartitionKey, LogBounds]:
    """Return each partition's range, and tell what was clamped; empty ones are left out.

    Raises:
        PermanentError: the end lies before the start.
    """
    bounds = logs.bounds(keys)
    starts, ends = (_resolved(logs, bounds, place, err) for place in (first, last))
    both_fixed = first.kind is last.kind and first.kind in {Kind.OFFSET, Kind.TIME}
    if (both_fixed and first.value > last.value) or (first.kind is Kind.LATEST and last.kind is Kind.EARLIEST):
        raise PermanentError("--to: lies before --from; the range runs from --from up to, and without, --to")
    ranges = {key: LogBounds(starts[key].offset, ends[key].offset) for key in keys}
    for key, one in ranges.items():
        what = f"offsets {one.start} to {one.end - 1}" if one.start < one.end else "nothing in the range"
        err.write(f"{key.topic}[{key.partition}]: {what}\n")
    return {key: one for key, one in ranges.items() if one.start < one.end}


def _resolved(
    logs: Logs, bounds: Mapping[PartitionKey, LogBounds], place: Place, err: TextIO
) -> dict[PartitionKey, Resolved]:
    times = logs.at_time(bounds, place.value) if place.kind is Kind.TIME else {}
    found: dict[PartitionKey, Resolved] = {}
    for key, log in bounds.items():
        one = resolve(place, log, times.get(key))
        assert one is not None  # only a shift can be nowhere, and none can be written here
        found[key] = one
        if one.note and place.kind is not Kind.TIME:
            err.write(f"{key.topic}[{key.partition}]: {one.note} ({one.offset})\n")
    return found


def _enter_environment(path: Path, spec: ParallelConsumerSpec, folder: Path) -> None:
    """Give this process what a member would have: the variables of `spec.env`, and the handler's folder first.

    Raises:
        PermanentError: with one line per problem of `spec.env`.
    """
    env, problems = render_env(spec.env, os.environ)
    if problems:
        raise PermanentError("\n".join(f"{path}: {problem}" for problem in problems))
    os.environ.update(env)
    sys.path.insert(0, str(folder))


def _sentence(summary: Summary) -> str:
    left = f", {summary.left:,} left" if summary.left else ""
    return (
        f"{summary.records:,} records in {summary.duration_s:.1f} s: {summary.failures:,} failures, "
        f"{summary.dead_letters:,} dead letters, {summary.results:,} results{left}"
    )
