"""The one thread that owns the consumer: it polls, runs the rebalance callbacks, commits, pauses and resumes.

It hands batches to the worker's event loop in one crossing each, two outstanding at most. When the loop stands still, or
the buffers stay full, it pauses every partition and goes on polling: slow handlers never cost the membership.
"""

import asyncio
import concurrent.futures
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from parallel_consumer_runtime.core import PartitionCommit, PartitionKey
from parallel_consumer_runtime.core.map_bounds import METADATA_SIZE_MAX
from parallel_consumer_runtime.errors import RuntimeFailure, TemporaryError
from parallel_consumer_runtime.kafka.client_statistics import (
    FETCHED_KIB_MAX,
    INTERVAL_MS,
    Ahead,
    FetchedAhead,
    fetched_ahead,
)
from parallel_consumer_runtime.kafka.committer import Committer
from parallel_consumer_runtime.kafka.convert import Batch, to_batch
from parallel_consumer_runtime.kafka.final_errors import advice, raise_if_final
from parallel_consumer_runtime.kafka.positions import Start, starts

BATCH_RECORDS_MAX = 1000
POLL_TIMEOUT_S = 0.05
OUTSTANDING_MAX = 2
STALL_S = 1.0
WATERMARK_INTERVAL_S = 0.5
CLOSE_TIMEOUT_S = 20.0
LAST_COMMIT_TIMEOUT_S = 12.0
"""How long the last commit is tried: several rebalances of three seconds."""
_EAGER = {"range", "roundrobin"}
"""Assignors with which every rebalance takes everything away and gives a whole new assignment."""

_log = logging.getLogger(__name__)


class Listener(Protocol):
    """What the owner tells; every method runs on the event loop's thread and must not block."""

    def on_assigned(self, starts: Sequence[Start]) -> None:
        """Partitions are ours from now on; called before any of their records is offered. May be empty."""
        ...

    def on_batch(self, batch: Batch) -> None:
        """Records were polled."""
        ...

    async def on_revoking(self, keys: Sequence[PartitionKey]) -> list[PartitionCommit]:
        """Partitions are to be given up: drain them, and return their last commits. The owner thread waits."""
        ...

    def on_revoked(self, keys: Sequence[PartitionKey], *, lost: bool) -> None:
        """Partitions are gone. Lost ones were owned by others already: nothing of them may be committed."""
        ...

    def on_committed(self, commits: Sequence[PartitionCommit], error: str | None) -> None:
        """A commit was acknowledged, or failed with an error."""
        ...

    def on_end_offsets(self, ends: dict[PartitionKey, int]) -> None:
        """High watermarks, as far as the last fetches told."""
        ...

    def on_reachable(self, *, reachable: bool) -> None:
        """Brokers answer, or none of them does."""
        ...

    def on_failure(self, failure: RuntimeFailure) -> None:
        """The consumer cannot go on; the process must end."""
        ...


class ConsumerOwner:
    """Owns a consumer from `start` until `stopped`.

    Args:
        config: librdkafka properties.
        topics: names, or one pattern beginning with ^.
        loop: the event loop on which the listener runs.
        listener: who is told.
        drain_timeout_s: how long a revocation waits for records in flight.
        settle_timeout_s: how much longer it waits for the listener to say that it is done.
        exact: nothing may be handled again. A listener that does not say so in time ends the member, since what it is doing
            must not outlive the partitions; and no map is given up because its log's end cannot be read for a moment.
        metadata_max: characters that a commit's map may take.
    """

    def __init__(
        self,
        config: dict[str, Any],
        topics: Sequence[str],
        loop: asyncio.AbstractEventLoop,
        listener: Listener,
        drain_timeout_s: float,
        *,
        settle_timeout_s: float = STALL_S,
        exact: bool = False,
        metadata_max: int = METADATA_SIZE_MAX,
    ) -> None:
        self._config = {"statistics.interval.ms": INTERVAL_MS, **config}
        self._config |= {"on_commit": self._on_commit, "error_cb": self._on_error, "stats_cb": self._on_statistics}
        self._eager = config.get("partition.assignment.strategy") in _EAGER
        self._topics = list(topics)
        self._loop = loop
        self._listener = listener
        self._drain_timeout_s = drain_timeout_s + settle_timeout_s
        self._exact = exact
        self._consumer: Consumer | None = None
        self._instance: str = config["group.instance.id"]
        self._committer = Committer(
            lambda commits, error: self._post(listener.on_committed, commits, error),
            lambda commit: commit.source.live and self._assigned.get(commit.source.key) == commit.source.assignment,
            self._instance,
            metadata_max,
        )
        self._commands: queue.SimpleQueue[Callable[[Consumer], None]] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="kafka-owner", daemon=True)
        self._stopping = threading.Event()
        self._room = threading.Event()
        self._handed_over = self._taken = 0
        self._wanted = True
        self._stalled = False
        self._assigned: dict[PartitionKey, int] = {}
        """What is ours, and the number of its assignment: a command that was meant for another one is dropped."""
        self._assignments = 0
        self._paused: set[PartitionKey] = set()
        self._held: list[Message] = []
        self._last_commits: list[PartitionCommit] = []
        self._watermarks_at = 0.0
        self._reachable = True
        self._closed: asyncio.Event = asyncio.Event()
        self.polled_at = time.monotonic()
        """When the thread last came round, monotonic seconds; read by the health check."""
        self.fetched_ahead = FetchedAhead()
        """What the client holds; a few seconds old."""

    # Called on the event loop's thread

    def start(self) -> None:
        """Begin polling."""
        self._thread.start()

    def want(self, wanted: bool) -> None:  # noqa: FBT001 - the one thing it says
        """Poll for records, or leave them with the broker: no bound of the whole is reached, or one is."""
        if wanted != self._wanted:
            self._wanted = wanted
            self._room.set()

    def pause(self, keys: Mapping[PartitionKey, int]) -> None:
        """Fetch nothing more of these partitions, each with its assignment, until they are resumed or assigned anew."""
        self._commands.put(lambda consumer: self._pause(consumer, keys))

    def resume(self, keys: Mapping[PartitionKey, int]) -> None:
        """Fetch these partitions again, each with its assignment."""
        self._commands.put(lambda consumer: self._resume(consumer, keys))

    def commit(self, commits: list[PartitionCommit], *, wait: bool = False) -> None:
        """Commit; `on_committed` follows. One at a time: the caller waits for it.

        Args:
            commits: what to commit.
            wait: fetch nothing until it is acknowledged.
        """
        command = self._committer.send_and_wait if wait else self._committer.send
        self._commands.put(lambda consumer: command(consumer, commits))

    def rewind(self, keys: Iterable[PartitionKey]) -> None:
        """Start these partitions again where the group's commits are; `on_assigned` follows for those that are still ours."""
        keys = list(keys)
        self._commands.put(lambda consumer: self._rewind(consumer, keys))

    @property
    def consumer(self) -> Consumer | None:
        """The consumer, for what any thread may ask of it; None before it is made and once it is being closed."""
        return self._consumer

    @property
    def ahead(self) -> Ahead:
        """What is on its way to the event loop, and how much of it there may be."""
        bytes_max = int(self._config.get("queued.max.messages.kbytes", FETCHED_KIB_MAX)) * 1024
        return Ahead(self.handed_over, OUTSTANDING_MAX, self.fetched_ahead.size_bytes, bytes_max)

    @property
    def handed_over(self) -> int:
        """Batches that the event loop has not taken yet, `OUTSTANDING_MAX` at most."""
        return self._handed_over - self._taken

    @property
    def commands(self) -> int:
        """Commands that the thread has not run yet. Each partition has two of them at most, its pause and its resume."""
        return self._commands.qsize()

    async def stop(self, last_commits: list[PartitionCommit]) -> None:
        """Commit for the last time, synchronously, and close. A static member keeps its place in the group."""
        self._last_commits = last_commits
        self._stopping.set()
        self._room.set()
        if self._thread.is_alive():
            try:
                await asyncio.wait_for(self._closed.wait(), CLOSE_TIMEOUT_S)
            except TimeoutError as error:
                msg = f"the Kafka client did not close within {CLOSE_TIMEOUT_S:g} s"
                raise TemporaryError(msg) from error

    # The owner thread

    def _run(self) -> None:
        consumer: Consumer | None = None
        try:
            self._consumer = consumer = Consumer(self._config)
            consumer.subscribe(
                self._topics, on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
            )
            while not self._stopping.is_set():
                self._turn(consumer)
            self._run_commands(consumer)
            self._committer.finish(consumer, self._last_commits, LAST_COMMIT_TIMEOUT_S)
            self._last_commits = []
        except RuntimeFailure as failure:
            self._post(self._listener.on_failure, failure)
        except KafkaException as error:
            self._post(self._listener.on_failure, TemporaryError(f"the Kafka client failed: {error}"))
        except Exception as error:  # noqa: BLE001 - whatever it was, the process must end with it
            _log.exception("the owner thread failed")
            self._post(self._listener.on_failure, TemporaryError(f"the owner thread failed: {error!r}"))
        finally:
            self._stopping.set()
            self._consumer = None
            if consumer is not None:
                consumer.close()
            self._post(self._closed.set)

    def _turn(self, consumer: Consumer) -> None:
        self.polled_at = time.monotonic()
        self._run_commands(consumer)
        self._make_room(consumer)
        # poll() waits for the first message only, consume(…, 0) then takes what is there: no added latency.
        first = consumer.poll(0 if self._held else POLL_TIMEOUT_S)
        if first is not None or self._held:
            # Kept where `_forget` finds them: consume() may run a rebalance, and what was polled before it would reach the
            # next assignment of its partition as if it had been polled there.
            self._held += [first] if first else []
            following = consumer.consume(BATCH_RECORDS_MAX - 1, 0)
            messages, self._held = self._held + following, []
            if usable := [message for message in messages if self._usable(message)]:
                self._handed_over += 1
                self._post(self._take, to_batch(usable))
        if self.polled_at - self._watermarks_at >= WATERMARK_INTERVAL_S:
            self._watermarks_at = self.polled_at
            self._tell_end_offsets(consumer)

    def _run_commands(self, consumer: Consumer) -> None:
        while True:
            try:
                command = self._commands.get_nowait()
            except queue.Empty:
                return
            command(consumer)

    def _has_room(self) -> bool:
        return self._wanted and self.handed_over < OUTSTANDING_MAX

    def _make_room(self, consumer: Consumer) -> None:
        """Wait until records are wanted; if that takes long, pause everything and let polling go on."""
        if self._stalled:
            if self._has_room():
                self._stalled = False
                consumer.resume(_partitions(self._assigned.keys() - self._paused))
            return
        deadline = time.monotonic() + STALL_S
        while not self._has_room() and not self._stopping.is_set():
            self._room.clear()
            if not self._has_room():
                self._room.wait(POLL_TIMEOUT_S)
            self._run_commands(consumer)
            self._hear_commit(consumer)
            if time.monotonic() >= deadline:
                self._stalled = True
                consumer.pause(_partitions(self._assigned))
                return

    def _hear_commit(self, consumer: Consumer) -> None:
        """Let a commit's acknowledgement in while no records are wanted.

        Only poll() runs callbacks, and it may bring one message along, which waits for the next batch: without this the
        commits, one in flight at most, would stand still for as long as the buffers are full.
        """
        if self._committer.in_flight and (message := consumer.poll(0)) is not None:
            self._held.append(message)

    def _usable(self, message: Message) -> bool:
        error = message.error()
        if error is None:
            self._tell_reachable(reachable=True)
            return True
        raise_if_final(error, self._instance)
        _log.warning("the broker reports: %s%s", error.str(), advice(error))
        return False

    def _still_ours(self, keys: Mapping[PartitionKey, int]) -> set[PartitionKey]:
        return {key for key, assignment in keys.items() if self._assigned.get(key) == assignment}

    def _pause(self, consumer: Consumer, keys: Mapping[PartitionKey, int]) -> None:
        chosen = self._still_ours(keys)
        self._paused |= chosen
        consumer.pause(_partitions(chosen))

    def _resume(self, consumer: Consumer, keys: Mapping[PartitionKey, int]) -> None:
        chosen = self._still_ours(keys)
        self._paused -= chosen
        if not self._stalled:
            consumer.resume(_partitions(chosen))

    def _on_commit(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        if self._committer.on_commit(error, partitions):
            self._tell_reachable(reachable=True)

    def _rewind(self, consumer: Consumer, keys: list[PartitionKey]) -> None:
        # An eager assignment is one whole, which only can be given anew as a whole.
        chosen = sorted(self._assigned) if self._eager else [key for key in keys if key in self._assigned]
        self._forget(chosen)
        if chosen:
            self._unassign(consumer, _partitions(chosen))
            self._on_assign(consumer, _partitions(chosen))

    # Rebalance callbacks: run inside poll, consume and close

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        latest = self._config["auto.offset.reset"] == "latest"
        found = starts(consumer, partitions, latest=latest, exact=self._exact)
        self._assignments += 1
        found = [start._replace(assignment=self._assignments) for start in found]
        self._assigned |= {start.key: start.assignment for start in found}
        self._post(self._listener.on_assigned, found)
        positions = [TopicPartition(*start.key, start.offset) for start in found]
        if self._eager:
            consumer.assign(positions)
        else:
            consumer.incremental_assign(positions)
        # The client keeps the pause of an assignment that is over.
        (consumer.pause if self._stalled else consumer.resume)(_partitions(start.key for start in found))
        self._tell_reachable(reachable=True)

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        keys = [PartitionKey(p.topic, p.partition) for p in partitions]
        if self._stopping.is_set():
            self._committer.send_last(consumer, [one for one in self._last_commits if one.source.key in keys])
        else:
            self._committer.send_last(consumer, self._drain(keys))
            self._post(self._revoked, keys, False)
        self._forget(keys)
        self._unassign(consumer, partitions)

    def _on_lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        keys = [PartitionKey(p.topic, p.partition) for p in partitions]
        self._post(self._revoked, keys, True)
        self._forget(keys)
        self._unassign(consumer, partitions)

    def _unassign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if self._eager:
            consumer.unassign()
        else:
            consumer.incremental_unassign(partitions)

    def _forget(self, keys: list[PartitionKey]) -> None:
        for key in keys:
            self._assigned.pop(key, None)
        self._paused.difference_update(keys)
        gone = set(keys)
        self._held = [m for m in self._held if PartitionKey(m.topic() or "", m.partition() or 0) not in gone]

    def _on_statistics(self, statistics: str) -> None:
        self.fetched_ahead = fetched_ahead(statistics)

    def _on_error(self, error: KafkaError) -> None:
        if error.code() == KafkaError._ALL_BROKERS_DOWN:  # noqa: SLF001 - librdkafka's local codes have this form
            self._tell_reachable(reachable=False)
        else:
            raise_if_final(error, self._instance)

    # Crossing to the event loop

    def _tell_end_offsets(self, consumer: Consumer) -> None:
        ends: dict[PartitionKey, int] = {}
        for key in self._assigned:
            _, high = consumer.get_watermark_offsets(TopicPartition(*key), cached=True)
            if high >= 0:
                ends[key] = high
        self._post(self._listener.on_end_offsets, ends)

    def _tell_reachable(self, *, reachable: bool) -> None:
        if reachable != self._reachable:
            self._reachable = reachable
            self._post(lambda: self._listener.on_reachable(reachable=reachable))

    def _take(self, batch: Batch) -> None:
        self._listener.on_batch(batch)
        self._taken += 1
        self._room.set()

    def _revoked(self, keys: list[PartitionKey], lost: bool) -> None:  # noqa: FBT001 - positional through call_soon
        self._listener.on_revoked(keys, lost=lost)

    def _post(self, callback: Callable[..., object], *arguments: object) -> None:
        try:
            self._loop.call_soon_threadsafe(callback, *arguments)
        except RuntimeError:  # the loop is closed: nobody is left to tell
            _log.debug("the event loop is closed; %s was not told", callback)

    def _drain(self, keys: list[PartitionKey]) -> list[PartitionCommit]:
        """Wait for the event loop to drain these partitions; it keeps to the drain timeout by itself."""
        future = asyncio.run_coroutine_threadsafe(self._listener.on_revoking(keys), self._loop)
        deadline = time.monotonic() + self._drain_timeout_s
        while time.monotonic() < deadline:
            self.polled_at = time.monotonic()
            try:
                return future.result(timeout=POLL_TIMEOUT_S)
            except concurrent.futures.TimeoutError:
                continue
        future.cancel()
        if self._exact:
            msg = "a transaction did not end before its partitions had to be given up"
            raise TemporaryError(msg)
        _log.warning(
            "the event loop did not drain %d partitions in time: their records may be handled again", len(keys)
        )
        return []


def _partitions(keys: Iterable[PartitionKey]) -> list[TopicPartition]:
    return [TopicPartition(*key) for key in keys]
