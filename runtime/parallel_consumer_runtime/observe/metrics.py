"""The snapshot in Prometheus' text format. Labels are topic and partition, nothing that users choose, and so many and no more."""

import threading
from collections.abc import Iterable
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from parallel_consumer_runtime.observe.snapshot import Board, Snapshot

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OTHERS = "others"
"""The label of the partitions that have no metrics of their own."""
_PREFIX = "parallel_consumer_"
_TASKS = Path("/proc/self/task")


class SnapshotCollector(Collector):
    """Turns the newest snapshot into metric families. Any thread."""

    def __init__(self, board: Board) -> None:
        self._board = board

    def collect(self) -> Iterable[Metric]:
        """Yield every family; nothing before the first snapshot."""
        snapshot = self._board.get()
        if snapshot is not None:
            yield from _held(snapshot)
            yield from _gauges(snapshot)
            yield from _counters(snapshot)
            yield from _partitions(snapshot)


def make_registry(board: Board) -> CollectorRegistry:
    """Return a registry with the snapshot and the process's own figures (memory, CPU, file descriptors)."""
    registry = CollectorRegistry()
    registry.register(SnapshotCollector(board))
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    return registry


def render_metrics(registry: CollectorRegistry) -> bytes:
    """Return the exposition."""
    return generate_latest(registry)


def _held(snapshot: Snapshot) -> Iterable[Metric]:
    for one in snapshot.held:
        yield GaugeMetricFamily(_PREFIX + one.name, one.text, value=one.now)
        yield GaugeMetricFamily(f"{_PREFIX}{one.name}_max", f"Bound: {one.text}", value=one.most)


def _threads() -> int:
    return len(list(_TASKS.iterdir())) if _TASKS.exists() else threading.active_count()


def _gauges(snapshot: Snapshot) -> Iterable[Metric]:
    status, engine = snapshot.status, snapshot.engine
    head = status.head_of_line
    for name, text, value in (
        ("producing", "Records whose results are not acknowledged yet", engine.producing),
        ("retrying", "Records that wait for another attempt", engine.retrying),
        ("gated", "Records whose turn it was, and that wait for their time or their rate", engine.gated),
        ("ready", "Records that could start if the concurrency were higher", engine.ready),
        ("starved", "1 while handlers are free and no record is there to start", int(_starved(snapshot))),
        ("parked", "Records held back because the map of their partition's commit is nearly full", engine.parked),
        ("partitions", "Partitions assigned", len(status.partitions)),
        ("paused_partitions", "Partitions not fetched from, because a bound is reached", engine.paused_partitions),
        ("kafka_reachable", "1 while brokers answer", int(status.kafka_reachable)),
        ("head_of_line_age_seconds", "Age of the oldest record in flight", head.age_s if head else 0),
        ("threads", "Threads of the process, the Kafka client's included", _threads()),
    ):
        yield GaugeMetricFamily(_PREFIX + name, text, value=value)


def _counters(snapshot: Snapshot) -> Iterable[Metric]:
    status, engine, counters = snapshot.status, snapshot.engine, snapshot.counters
    for name, text, value in (
        ("handled", "Records completed", status.handled),
        ("started", "Records whose call began", counters.started),
        ("calls", "Handler calls that ended", counters.calls),
        ("busy_seconds", "Time spent in handlers, summed over all calls", counters.busy_s),
        ("queued_seconds", "Time between poll and start, summed over all started records", counters.queued_s),
        ("slow", "Calls that ran longer than slowAfter", counters.slow),
        ("process_restarts", "Handler processes that ended by themselves and were replaced", snapshot.worker.restarts),
        ("process_crashes", "Those of them whose handler was at a record", snapshot.worker.crashes),
        ("rate_keys_forgotten", "Keys whose rates were forgotten too soon", snapshot.rate_keys_forgotten),
        ("ignored", "Records complete without a call, because their key is ignored", engine.ignored),
        ("handler_skipped", "Records that their handler skipped", counters.skipped),
        ("retried", "Records acknowledged by the retry topic", counters.retried),
        ("reaped", "Deferred records whose completion did not come in time", counters.reaped),
        ("late_completions", "Completions that came for records that had ended", counters.late_completions),
        ("failures", "Handler calls that raised", status.failures),
        ("dead_lettered", "Records acknowledged by the dead-letter topic", status.dead_lettered),
        ("results", "Records acknowledged by the results topic", status.results),
        ("skipped", "Records not handled because the committed map says they are complete", status.skipped),
        ("metadata_errors", "Committed maps that could not be read", status.metadata_errors),
        ("rebalances", "Assignments after the first, and revocations", status.rebalances),
        ("commits", "Commits acknowledged", snapshot.commits),
        ("commit_failures", "Commits refused or unanswered", snapshot.commit_failures),
    ):
        yield CounterMetricFamily(_PREFIX + name, text, value=value)


def _starved(snapshot: Snapshot) -> bool:
    engine = snapshot.engine
    return snapshot.joined and engine.ready == 0 and engine.in_flight < snapshot.status.concurrency


def _partitions(snapshot: Snapshot) -> Iterable[Metric]:
    labels = ["topic", "partition"]
    lag = GaugeMetricFamily(_PREFIX + "lag", "Records not complete by the last commit", labels=labels)
    committed = GaugeMetricFamily(_PREFIX + "committed_offset", "Last acknowledged commit", labels=labels)
    partitions, most = snapshot.status.partitions, snapshot.partitions_max
    if others := [one.lag for one in partitions[most:] if one.lag is not None]:
        lag.add_metric(["", OTHERS], sum(others))
    for partition in partitions[:most]:
        values = [partition.topic, str(partition.partition)]
        if partition.lag is not None:
            lag.add_metric(values, partition.lag)
        if partition.committed is not None:
            committed.add_metric(values, partition.committed)
    yield lag
    yield committed
