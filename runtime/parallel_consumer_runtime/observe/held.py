"""What a member holds at one moment, and how much of it there may be: every bound that a setting moves, beside its present value.

`docs/memory.md` is the table of them; a test holds the two together.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from parallel_consumer_runtime.core import Partition
from parallel_consumer_runtime.kafka.client_statistics import Ahead
from parallel_consumer_runtime.processing import Processing
from parallel_consumer_runtime.settings import LiveSettings, StaticSettings


class Held(NamedTuple):
    """One figure, and its bound."""

    name: str
    """Of the metric; the bound's ends in `_max`."""
    text: str
    now: float
    most: float


def held(processing: Processing, settings: StaticSettings, live: LiveSettings, ahead: Ahead) -> tuple[Held, ...]:
    """Return every figure. On the event loop's thread.

    Args:
        processing: what lies between polled records and commits.
        settings: the static half.
        live: the live half that is applied.
        ahead: what is on its way to it.
    """
    engine, dispatcher, worker = processing.engine, processing.dispatcher, processing.worker.statistics
    statistics, bounds, outcomes = engine.statistics(), engine.bounds, dispatcher.outcomes
    partitions = engine.partitions.values()
    stop = None if settings.dead_letter is None else settings.dead_letter.stop
    return (
        Held("concurrency", "Records that may be in flight now", engine.limit, live.concurrency.bounds[1]),
        Held("in_flight", "Records with the handler", statistics.in_flight, engine.limit),
        Held("deferred", "Records whose handler deferred them", dispatcher.deferred, engine.limit),
        Held("workers", "Coroutines, threads or processes that call handlers", worker.size, worker.size_max),
        Held("buffered", "Records waiting or running", statistics.buffered, bounds.records),
        Held("buffered_bytes", "Bytes of keys and values waiting or running", statistics.buffered_bytes, bounds.bytes),
        Held(
            "partition_buffered",
            "Records waiting or running, of the partition that has most",
            _most(partitions, lambda one: one.buffered),
            bounds.records_per_partition,
        ),
        Held(
            "partition_buffered_bytes",
            "Bytes of keys and values waiting or running, of the partition that has most",
            _most(partitions, lambda one: one.buffered_bytes),
            bounds.bytes_per_partition,
        ),
        Held(
            "map_gaps",
            "Gaps in the map of completed records, of the partition that has most",
            _most(partitions, lambda one: one.ledger.gaps),
            engine.maps.gaps or int(engine.maps.reach) // 2,
        ),
        Held(
            "map_span",
            "Offsets in the map of completed records, of the partition that has most",
            _most(partitions, lambda one: one.ledger.span),
            int(min(engine.maps.span, engine.maps.reach)),
        ),
        Held(
            "producing_bytes",
            "Bytes of results, dead letters and retried records that are not acknowledged",
            outcomes.outlet.held_bytes,
            outcomes.outlet.bytes_max,
        ),
        Held(
            "refused_results",
            "Records whose results were refused, and that are remembered for it",
            len(outcomes.refused),
            outcomes.refused.most(),
        ),
        Held("rate_keys", "Keys whose rates are remembered", processing.gates.keys_remembered, live.rate_limit.keys),
        Held(
            "given_up_recent",
            "Records that were given up of late, as deadLetter.stop looks at them",
            outcomes.given_up_recently,
            0 if stop is None else stop.window,
        ),
        Held("handed_over", "Batches on their way to the handlers' thread", ahead.batches, ahead.batches_max),
        Held("fetched_bytes", "Bytes of records that the client fetched ahead", ahead.size_bytes, ahead.bytes_max),
        Held(
            "measured_partitions",
            "Assigned partitions that have metrics of their own",
            min(len(partitions), settings.monitoring.partitions),
            settings.monitoring.partitions,
        ),
    )


def _most(partitions: Iterable[Partition], of: Callable[[Partition], int]) -> int:
    return max(map(of, partitions), default=0)
