"""The operator's own figures, in Prometheus' format."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

_PREFIX = "parallel_consumer_operator_"


class Metrics:
    """Counters and gauges of one operator. Any thread."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self.reconciles = Counter(f"{_PREFIX}reconciles", "Reconciles by outcome", ["outcome"], registry=self.registry)
        self.seconds = Histogram(f"{_PREFIX}reconcile_seconds", "Time of one reconcile", registry=self.registry)
        self.waiting = Gauge(f"{_PREFIX}queue_waiting", "Keys that wait for a worker", registry=self.registry)
        self.objects = Gauge(f"{_PREFIX}objects", "ParallelConsumers known", registry=self.registry)
        self.spark_jobs = Gauge(f"{_PREFIX}spark_jobs", "SparkJobs known", registry=self.registry)
