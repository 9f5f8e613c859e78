"""One member of the group: wires owner, engine, worker and producer together, and lives and ends in order.

Threads: this module lives on the event loop. The consumer has its owner thread, the producer its serving thread, the
status server one per request; each crosses to the loop by `call_soon_threadsafe`, once per batch.
"""

import asyncio
import logging
import time
from collections.abc import Coroutine, Sequence
from copy import copy
from typing import Any

from parallel_consumer_runtime.adaption import Adaption
from parallel_consumer_runtime.core import End, PartitionCommit, PartitionKey, Transaction
from parallel_consumer_runtime.errors import RuntimeFailure, TemporaryError
from parallel_consumer_runtime.handlers import Handler
from parallel_consumer_runtime.kafka.config import consumer_config, producer_config
from parallel_consumer_runtime.kafka.convert import Batch
from parallel_consumer_runtime.kafka.owner import STALL_S, ConsumerOwner
from parallel_consumer_runtime.kafka.positions import Start
from parallel_consumer_runtime.kafka.producer import ResultProducer
from parallel_consumer_runtime.kafka.transactions import CUT_TIMEOUT_S, TransactionalProducer
from parallel_consumer_runtime.observe import Board, Snapshot
from parallel_consumer_runtime.observe.held import held
from parallel_consumer_runtime.observe.slow import SlowWatch
from parallel_consumer_runtime.observe.snapshot import head_of_line, partition_statuses, produced_ends
from parallel_consumer_runtime.pipeline import ScopedHandler
from parallel_consumer_runtime.processing import Processing
from parallel_consumer_runtime.settings import CommitMode, LiveSettings, MemberState, MemberStatus, StaticSettings

FLOW_INTERVAL_S = 0.02
DRAIN_INTERVAL_S = 0.005
SNAPSHOT_INTERVAL_S = 0.25

_log = logging.getLogger(__name__)


class Member:
    """Consumes from `run` until it is told to stop.

    Args:
        name: the pod's name, which becomes group.instance.id.
        settings: the static half.
        live: the first live half.
        handler: what is called for each record.
        board: where snapshots go.

    Must be made on the event loop's thread.
    """

    def __init__(self, name: str, settings: StaticSettings, live: LiveSettings, handler: Handler, board: Board) -> None:
        loop = asyncio.get_running_loop()
        self.name = name
        self.state = MemberState.STARTING
        self.failure: RuntimeFailure | None = None
        self._settings = settings
        self._handler = handler
        self._live = live
        self._board = board
        self._producer: ResultProducer | None = None
        self._transactions: TransactionalProducer | None = None
        told = [topic for topic in (settings.results_topic, settings.dead_letter_topic) if topic is not None]
        if settings.commit_mode == CommitMode.TRANSACTIONAL:
            self._transactions = TransactionalProducer(
                producer_config(settings, name),
                loop,
                self.on_failure,
                settings.kafka.offset_metadata_max_bytes,
                told=told,
            )
            self._producer = self._transactions
        elif settings.results_topic or settings.dead_letter or settings.retry_topic:
            self._producer = ResultProducer(producer_config(settings, name), loop, self.on_failure, told=told)
        self._processing = Processing(name, settings, live, handler, self._producer, self.on_failure)
        self._engine, self._dispatcher = self._processing.engine, self._processing.dispatcher
        self._worker = self._processing.worker
        self._adaption = Adaption(self._engine, self._dispatcher, live.concurrency)
        self._transaction: Transaction | None = None
        if self._transactions is not None:
            self._transaction = Transaction(self._engine, self._transactions.outbox, self._rewind, time.monotonic)
        self._slow = SlowWatch(self._dispatcher.counters)
        topics = settings.kafka.topics or [settings.kafka.topic_pattern or ""]
        if settings.retry_topic is not None:
            topics = [*topics, settings.retry_topic.topic]
        self._owner = ConsumerOwner(
            consumer_config(settings, name),
            topics,
            loop,
            self,
            settings.drain_timeout,
            settle_timeout_s=STALL_S if self._transactions is None else CUT_TIMEOUT_S,
            exact=self._transactions is not None,
            metadata_max=settings.kafka.offset_metadata_max_bytes,
        )
        self._spawned: set[asyncio.Task[None]] = set()
        self._stop = asyncio.Event()
        self._stop_now = asyncio.Event()
        self._ends: dict[PartitionKey, int] = {}
        self._committing = False
        self._committed_at = 0
        """How many records were complete when the last commit was planned."""
        self._commits = self._commit_failures = self._metadata_errors = self._rebalances = 0
        self._joined = False
        self._rewinding = False
        """Partitions are ours whose commits are being read again: nobody knows the lag."""
        self._reachable = True
        self._started_at = time.time()

    async def run(self) -> None:
        """Consume until `stop`, a failure, or cancellation; then drain, commit and close.

        Raises:
            RuntimeFailure: why the member could not go on.
        """
        tickers = [
            asyncio.create_task(ticker)
            for ticker in (self._tick_flow(), self._tick_commits(), self._tick_snapshots(), self._adaption.run())
        ]
        for ticker in tickers:
            ticker.add_done_callback(self._ticker_ended)
        if self._producer is not None:
            self._producer.start()
        self._worker.start()
        self._apply_state()
        try:
            if self._transactions is not None:
                await self._transactions.begin()
            self._owner.start()
            await self._stop.wait()
            await self._close()
        finally:
            for ticker in tickers:
                ticker.cancel()
            self._snapshot()
        if self.failure is not None:
            raise self.failure

    def stop(self) -> None:
        """Drain and end; called a second time, end without waiting for records in flight."""
        if self._stop.is_set():
            self._stop_now.set()
        self._stop.set()

    def apply(self, live: LiveSettings) -> None:
        """Take a new live half; records in flight are not touched."""
        self._live = live
        self._processing.apply(live)
        self._adaption.bound(live.concurrency)
        self._apply_state()
        self._snapshot()
        self._dispatcher.wake()

    # What the owner thread tells, on the event loop

    def on_assigned(self, starts: Sequence[Start]) -> None:
        """Partitions are ours."""
        self._rewinding = False
        for start in starts:
            self._engine.assign(start.key, start.ledger, start.assignment)
            self._metadata_errors += not start.readable
        self._rebalances += self._joined
        self._joined = True
        self._apply_state()
        _log.info(
            "assigned: %s", ", ".join(f"{s.key.topic}[{s.key.partition}]@{s.offset}" for s in starts) or "nothing"
        )

    def on_batch(self, batch: Batch) -> None:
        """Records were polled."""
        now = time.monotonic()
        try:
            for key, records in batch.items():
                if self._engine.offer(key, records, now):
                    self._worker.end_partition(*key)
                    _log.warning(
                        "%s[%d]: the log begins anew; what was known of it is forgotten, and it is handled from there",
                        *key,
                    )
        except RuntimeFailure as failure:  # the user's own function of sub-partitions
            self.on_failure(failure)
            return
        self._flow()
        self._dispatcher.wake()

    async def on_revoking(self, keys: Sequence[PartitionKey]) -> list[PartitionCommit]:
        """Drain partitions before they are given up."""
        self._engine.close(keys)
        await self._drained(keys)
        if self._transactions is not None:
            await self._cut()
            return []
        return self._engine.final_commits(keys)

    def on_revoked(self, keys: Sequence[PartitionKey], *, lost: bool) -> None:
        """Partitions are gone."""
        self._engine.revoke(keys)
        if self._transactions is not None and self._transactions.outbox.spoiled:
            # What was produced for them is in the open transaction, and others will produce it again.
            self._spawn(self._cut())
        for key in keys:
            self._ends.pop(key, None)
            self._worker.end_partition(*key)
        self._rebalances += 1
        _log.info("%s: %s", "lost" if lost else "revoked", ", ".join(f"{k.topic}[{k.partition}]" for k in keys))
        self._dispatcher.wake()

    def on_committed(self, commits: Sequence[PartitionCommit], error: str | None) -> None:
        """A commit ended."""
        self._committing = False
        self._engine.committed(commits, acknowledged=error is None)
        if error is None:
            self._commits += 1
        else:
            self._commit_failures += 1
            _log.warning("a commit failed (%s); it is repeated", error)

    def on_end_offsets(self, ends: dict[PartitionKey, int]) -> None:
        """High watermarks."""
        self._ends = ends

    def on_reachable(self, *, reachable: bool) -> None:
        """Brokers answer, or none does."""
        self._reachable = reachable
        if not reachable:
            _log.warning("no broker answers at %s", self._settings.kafka.bootstrap_servers)

    def on_failure(self, failure: RuntimeFailure) -> None:
        """The member cannot go on."""
        if self.failure is None:
            self.failure = failure
        self._stop.set()
        self._stop_now.set()

    # Life

    def _apply_state(self) -> None:
        if self._stop.is_set():
            return
        self._engine.halted = self._live.paused
        if self._joined:
            self.state = MemberState.PAUSED if self._live.paused else MemberState.RUNNING

    async def _close(self) -> None:
        self.state = MemberState.DRAINING
        self._engine.halted = True
        self._snapshot()
        keys = list(self._engine.partitions)
        await self._drained(keys)
        self.state = MemberState.CLOSING
        self._snapshot()
        # What failed the owner may have left partitions to others: then nothing may be committed.
        last_commits: list[PartitionCommit] = []
        if self.failure is None and self._transactions is not None:
            await self._cut()
        elif self.failure is None:
            last_commits = self._engine.final_commits(keys)
        await self._owner.stop(last_commits)
        self._engine.revoke(keys)
        await self._worker.stop()
        if isinstance(self._handler, ScopedHandler):
            await self._handler.end()
        if self._producer is not None:
            await self._producer.stop()
        self.state = MemberState.CLOSED

    async def _drained(self, keys: Sequence[PartitionKey]) -> None:
        deadline = time.monotonic() + self._settings.drain_timeout
        while (active := self._engine.active(keys)) and not self._stop_now.is_set():
            if time.monotonic() >= deadline:
                _log.warning("%d records in flight did not end within the drain timeout", active)
                return
            await asyncio.sleep(DRAIN_INTERVAL_S)

    # Tickers

    async def _tick_flow(self) -> None:
        while True:
            await asyncio.sleep(FLOW_INTERVAL_S)
            self._flow()
            enough = self._live.commit_records
            if enough and self._engine.completed - self._committed_at >= enough:
                self._commit_if_due()

    async def _tick_commits(self) -> None:
        while True:
            await asyncio.sleep(self._live.commit_interval)
            self._commit_if_due()

    async def _tick_snapshots(self) -> None:
        while True:
            self._snapshot()
            await asyncio.sleep(SNAPSHOT_INTERVAL_S)

    def _ticker_ended(self, ticker: asyncio.Task[None]) -> None:
        if not ticker.cancelled() and (error := ticker.exception()) is not None:
            _log.error("a periodic task failed", exc_info=error)
            self.on_failure(RuntimeFailure(f"a periodic task failed: {error!r}"))

    def _flow(self) -> None:
        flow = self._engine.flow()
        if flow.pause:
            self._owner.pause(self._assignments(flow.pause))
        if flow.resume:
            self._owner.resume(self._assignments(flow.resume))
        self._owner.want(flow.wanted)

    def _assignments(self, keys: Sequence[PartitionKey]) -> dict[PartitionKey, int]:
        return {key: self._engine.partitions[key].assignment for key in keys}

    def _commit_if_due(self) -> None:
        if self._committing or self.state not in {MemberState.RUNNING, MemberState.PAUSED, MemberState.DRAINING}:
            return
        self._committed_at = self._engine.completed
        if self._transactions is not None:
            self._committing = True
            self._spawn(self._cut_in_turn())
            return
        if commits := self._engine.commits():
            self._committing = True
            self._owner.commit(commits, wait=self._settings.commit_mode == CommitMode.SYNC)

    async def _cut_in_turn(self) -> None:
        try:
            await self._cut()
        finally:
            self._committing = False

    async def _cut(self) -> None:
        """Commit what is complete, results and offsets together; begin again from the last transaction if that fails."""
        assert self._transactions is not None
        assert self._transaction is not None
        try:
            end = await self._transactions.cut(self._transaction, lambda: self._owner.consumer)
        except TemporaryError as failure:
            self.on_failure(failure)
        else:
            self._commits += end is End.COMMITTED
            self._commit_failures += end is End.ABORTED

    def _rewind(self, keys: Sequence[PartitionKey]) -> None:
        """Start partitions anew where their commits are; the engine gave them up."""
        self._rewinding = bool(keys)
        self._owner.rewind(keys)
        self._dispatcher.wake()

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._spawned.add(task)
        task.add_done_callback(self._spawned.discard)
        task.add_done_callback(self._ticker_ended)

    def _snapshot(self) -> None:
        engine, counters, now = self._engine, self._dispatcher.counters, time.monotonic()
        statistics = engine.statistics()
        partitions = partition_statuses(engine, self._ends)
        lags = [partition.lag for partition in partitions]
        known = self._joined and not self._rewinding and None not in lags
        oldest = next(iter(self._dispatcher.running), None)
        self._slow.look(self._dispatcher.running, self._live.slow_after, now)
        status = MemberStatus(
            member=self.name,
            state=self.state,
            revision=self._live.revision,
            epoch=engine.epoch,
            rebalances=self._rebalances,
            concurrency=engine.limit,
            in_flight=statistics.in_flight,
            buffered=statistics.buffered,
            handled=statistics.completed,
            failures=counters.failures,
            dead_lettered=counters.dead_lettered,
            results=0 if self._producer is None else self._producer.acknowledged - counters.dead_lettered,
            skipped=statistics.skipped,
            metadata_errors=self._metadata_errors,
            lag=sum(lag for lag in lags if lag is not None) if known else None,
            kafka_reachable=self._reachable,
            partitions=partitions,
            produced=[] if self._producer is None else produced_ends(self._producer.produced.ends()),
            head_of_line=head_of_line(oldest, now),
            at=time.time(),
            started_at=self._started_at,
            first_handled_at=counters.first_handled_at,
            error=str(self.failure) if self.failure else None,
        )
        self._board.put(
            Snapshot(
                status=status,
                engine=statistics,
                counters=copy(counters),
                commits=self._commits,
                commit_failures=self._commit_failures,
                polled_at=self._owner.polled_at,
                taken_at=now,
                joined=self._joined,
                held=held(self._processing, self._settings, self._live, self._owner.ahead),
                worker=self._worker.statistics,
                rate_keys_forgotten=self._processing.gates.keys_forgotten,
                partitions_max=self._settings.monitoring.partitions,
                stuck_after_s=self._live.stuck_after,
            )
        )
