"""Handles ranges once more: the engine, worker, retry policy and producer of a member, without its group and its commits."""

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from parallel_consumer_runtime.adaption import Adaption
from parallel_consumer_runtime.core import Delivery, Ledger, Partition, PartitionKey
from parallel_consumer_runtime.errors import RuntimeFailure
from parallel_consumer_runtime.handlers import Handler, Result
from parallel_consumer_runtime.kafka.config import producer_config
from parallel_consumer_runtime.kafka.logs import LogBounds
from parallel_consumer_runtime.kafka.producer import ResultProducer
from parallel_consumer_runtime.kafka.ranges import RangeReader
from parallel_consumer_runtime.outcomes import Sender
from parallel_consumer_runtime.processing import Processing
from parallel_consumer_runtime.settings import LiveSettings, StaticSettings

BATCH_RECORDS_MAX = 1000
IDLE_S = 0.005

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Summary:
    """What a replay came to."""

    records: int
    """Complete: handled, skipped on purpose, or dead letters."""
    failures: int
    """Calls that raised."""
    dead_letters: int
    results: int
    """Records that handlers returned and the broker acknowledged."""
    left: int
    """Records that were read and not completed, when it was stopped."""
    whole: bool
    """Every record of the range is complete."""
    duration_s: float


class _Dropped:
    """Takes results and drops them; dead letters go where they go."""

    def __init__(self, sender: Sender | None, results_topic: str) -> None:
        self._sender = sender
        self._results_topic = results_topic

    def send(self, topic: str, results: Sequence[Result], delivery: Delivery, source: Partition) -> None:
        """Acknowledge results at once."""
        if topic != self._results_topic:
            assert self._sender is not None
            self._sender.send(topic, results, delivery, source)
        else:
            asyncio.get_running_loop().call_soon(delivery, None)


class Replay:
    """One replay, from `run` until its range is complete. Must be made on the event loop's thread.

    Args:
        settings: the static half.
        live: the live half; its concurrency, retry and buffer apply.
        handler: what is called for each record.
        ranges: for each partition, the first offset and the one after the last.
        results: whether to produce what handlers return.
    """

    def __init__(
        self,
        settings: StaticSettings,
        live: LiveSettings,
        handler: Handler,
        ranges: Mapping[PartitionKey, LogBounds],
        *,
        results: bool,
    ) -> None:
        self.name = f"{settings.name}-replay"
        # The retry topic is consumed by the group, which a replay is not to feed: its records are tried again in place.
        self._settings = settings = settings.model_copy(update={"retry_topic": None})
        self._ranges = ranges
        self._producer: ResultProducer | None = None
        if (settings.results_topic and results) or settings.dead_letter_topic:
            loop = asyncio.get_running_loop()
            self._producer = ResultProducer(producer_config(settings, self.name), loop, self._on_failure)
        sender: Sender | None = self._producer
        if settings.results_topic and not results:
            sender = _Dropped(self._producer, settings.results_topic)
        # Nothing is committed, so no map can grow too long.
        processing = Processing(self.name, settings, live, handler, sender, self._on_failure, maps=False)
        self._engine, self._dispatcher, self._worker = processing.engine, processing.dispatcher, processing.worker
        self._adaption = Adaption(self._engine, self._dispatcher, live.concurrency)
        self._stopping = False
        self._failure: RuntimeFailure | None = None

    @property
    def completed(self) -> int:
        """Records complete so far."""
        return self._engine.completed

    def stop(self) -> None:
        """Hand out nothing more, finish what is in flight, and end; called from a signal's handler on the loop."""
        self._stopping = True

    async def run(self) -> Summary:
        """Handle every record of the ranges.

        Raises:
            RuntimeFailure: why it could not go on. What was handled by then was handled.
        """
        began = time.monotonic()
        for key, bounds in self._ranges.items():
            self._engine.assign(key, Ledger(bounds.start))
        reader = RangeReader(self._settings, self.name, self._ranges)
        adapting = asyncio.create_task(self._adaption.run())
        adapting.add_done_callback(self._adapting_ended)
        try:
            if self._producer is not None:
                self._producer.start()
            self._worker.start()
            await self._read_and_handle(reader)
            await self._drain()
        finally:
            adapting.cancel()
            reader.close()
            await self._worker.stop()
            if self._producer is not None:
                await self._producer.stop()
        left = self._engine.statistics().buffered
        dead = self._dispatcher.counters.dead_lettered
        return Summary(
            records=self._engine.completed,
            failures=self._dispatcher.counters.failures,
            dead_letters=dead,
            results=0 if self._producer is None else self._producer.acknowledged - dead,
            left=left,
            whole=reader.done and left == 0,
            duration_s=time.monotonic() - began,
        )

    async def _read_and_handle(self, reader: RangeReader) -> None:
        while not self._stopping and not (reader.done and self._engine.statistics().buffered == 0):
            if self._failure is not None:
                raise self._failure
            flow = self._engine.flow()
            if flow.pause:
                reader.pause(flow.pause)
            if flow.resume:
                reader.resume(flow.resume)
            batch = reader.read(BATCH_RECORDS_MAX) if flow.wanted and not reader.done else {}
            for key, records in batch.items():
                self._engine.offer(key, records, time.monotonic())
            self._dispatcher.wake()
            # Reading shares the loop with the handlers: without a pause they would wait for it, and it would spin.
            await asyncio.sleep(0 if batch else IDLE_S)

    async def _drain(self) -> None:
        """Let what is in flight end, when told to stop early."""
        self._engine.halted = True
        deadline = time.monotonic() + self._settings.drain_timeout
        while active := self._engine.active(self._ranges):
            if time.monotonic() >= deadline:
                _log.warning("%d records in flight did not end within the drain timeout", active)
                return
            await asyncio.sleep(IDLE_S)

    def _adapting_ended(self, adapting: asyncio.Task[None]) -> None:
        if not adapting.cancelled() and (error := adapting.exception()) is not None:
            _log.error("adapting the concurrency failed", exc_info=error)
            self._on_failure(RuntimeFailure(f"adapting the concurrency failed: {error!r}"))

    def _on_failure(self, failure: RuntimeFailure) -> None:
        self._failure = failure
