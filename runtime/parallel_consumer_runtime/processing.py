"""Builds what lies between polled records and commits: engine, gates, dispatcher, worker, from the settings.

One place for members of the group and for replays, so that both mean the same by the same manifest.
"""

import base64
import binascii
from collections.abc import Callable, Hashable
from contextlib import suppress

from parallel_consumer_runtime.core import (
    BatchShape,
    Bounds,
    Engine,
    Gates,
    GivenUp,
    Rates,
    RetryPolicy,
    ShardOf,
    hashed,
    round_robin,
)
from parallel_consumer_runtime.core.map_bounds import NO_MAP, MapBounds, fitting_bounds, map_bounds
from parallel_consumer_runtime.dispatch import Dispatcher
from parallel_consumer_runtime.errors import PermanentError, RuntimeFailure
from parallel_consumer_runtime.handlers import Handler, Record
from parallel_consumer_runtime.importing import load_function
from parallel_consumer_runtime.outcomes import CLOCK, Clock, Routes, Sender
from parallel_consumer_runtime.retry_topic import NOT_BEFORE, Schedule
from parallel_consumer_runtime.settings import (
    CommitMode,
    DeadLetterSpec,
    LiveSettings,
    StaticSettings,
    SubPartitioning,
    SubPartitionsSpec,
)
from parallel_consumer_runtime.workers import Pool, Worker, make_worker

_BASE64 = "base64:"


class Processing:
    """Engine, dispatcher and worker of one process. Made on the event loop's thread, which also calls every method.

    Args:
        name: the member's name.
        settings: the static half.
        live: the first live half.
        handler: what is called.
        sender: for what records become; None when there is no route.
        on_failure: told when the process should end.
        maps: what is complete is committed, with a map that must fit.
        clock: the time.

    Raises:
        PermanentError: naming the field that does not fit.
    """

    def __init__(  # noqa: PLR0917 - each is one collaborator
        self,
        name: str,
        settings: StaticSettings,
        live: LiveSettings,
        handler: Handler,
        sender: Sender | None,
        on_failure: Callable[[RuntimeFailure], None],
        *,
        maps: bool = True,
        clock: Clock = CLOCK,
    ) -> None:
        self._clock = clock
        self.engine = Engine(
            settings.ordering,
            bounds_of(live),
            live.concurrency.bounds[0],
            shard_of=_shard_of(settings.sub_partitions),
            maps=_maps_of(settings) if maps else NO_MAP,
        )
        self._retries = settings.retry_topic is not None
        self.dispatcher = Dispatcher(
            self.engine,
            sender,
            name,
            Routes(
                settings.results_topic,
                settings.dead_letter_topic,
                settings.retry_topic,
                settings.producer.buffer_bytes,
                provenance=settings.results_provenance,
            ),
            policy_of(live),
            on_failure=on_failure,
            shape=_shape_of(settings),
            deferral_timeout_s=None if settings.deferral is None else settings.deferral.timeout,
            given_up=_given_up_of(settings.dead_letter),
            clock=clock,
        )
        pool = Pool(settings.handler, settings.processes, on_failure)
        self.worker: Worker = make_worker(settings.worker, handler, self.dispatcher, pool)
        self.dispatcher.worker = self.worker
        self.schedule: Schedule | None = None
        self._gated_by: tuple[object, ...] = ()
        self.gates = Gates(Rates())
        self.apply(live)

    def apply(self, live: LiveSettings) -> None:
        """Take bounds, attempts and gates of a live half; the limit is the limiter's."""
        self.engine.bounds = bounds_of(live)
        self.dispatcher.set_policy(policy_of(live))
        gated_by = (live.rate_limit, tuple(live.ignored_keys), live.scheduled_time_header)
        if gated_by == self._gated_by:
            return  # new gates would forget what of their rates is used up
        self._gated_by = gated_by
        names = ((NOT_BEFORE,) if self._retries else ()) + (
            (live.scheduled_time_header,) if live.scheduled_time_header else ()
        )
        self.schedule = Schedule(names, self._clock.monotonic, self._clock.wall) if names else None
        limit = live.rate_limit
        rates = Rates(limit.records, limit.records_per_partition, limit.records_per_key)
        self.gates = Gates(rates, [key_of(text) for text in live.ignored_keys], self.schedule, limit.keys)
        self.engine.set_gates(self.gates)


def key_of(text: str) -> bytes:
    """Return the key that a manifest names: its text, or what follows `base64:`; text that is no base64 is a key itself."""
    if text.startswith(_BASE64):
        with suppress(binascii.Error):
            return base64.b64decode(text.removeprefix(_BASE64), validate=True)
    return text.encode()


def bounds_of(live: LiveSettings) -> Bounds:
    """Return the engine's bounds."""
    buffer = live.buffer
    return Bounds(buffer.records_per_partition, buffer.records, buffer.bytes, buffer.bytes_per_partition)


def policy_of(live: LiveSettings) -> RetryPolicy:
    """Return attempts and backoff."""
    return RetryPolicy(live.retry.max_attempts, live.retry.initial_backoff, live.retry.max_backoff)


def _shape_of(settings: StaticSettings) -> BatchShape | None:
    batch = settings.batch
    return None if batch is None else BatchShape(batch.size, batch.minimum, batch.linger, batch.same_key)


def _maps_of(settings: StaticSettings) -> MapBounds:
    size_max = settings.kafka.offset_metadata_max_bytes
    return fitting_bounds(size_max) if settings.commit_mode == CommitMode.TRANSACTIONAL else map_bounds(size_max)


def _given_up_of(spec: DeadLetterSpec | None) -> GivenUp | None:
    stop = None if spec is None else spec.stop
    return None if stop is None else GivenUp(stop.max_consecutive, stop.max_ratio, stop.window)


def _checked(path: str) -> ShardOf:
    field = "spec.processing.subPartitions.function"
    function = load_function(path, field)

    def shard_of(record: Record) -> Hashable | None:
        place = f"{record.topic}[{record.partition}]@{record.offset}"
        try:
            shard = function(record)
        except Exception as error:
            msg = f"{field}: {path} raised {type(error).__name__}: {error}, for {place}"
            raise PermanentError(msg) from error
        if shard is None or isinstance(shard, (str, bytes, int)):
            return shard
        msg = f"{field}: {path} returned {type(shard).__name__} for {place}; return a string, bytes, a number or None"
        raise PermanentError(msg)

    return shard_of


def _shard_of(spec: SubPartitionsSpec | None) -> ShardOf | None:
    if spec is None:
        return None
    if spec.by == SubPartitioning.FUNCTION:
        return _checked(str(spec.function))
    return hashed(spec.count) if spec.by == SubPartitioning.HASH else round_robin(spec.count)
