"""Valid and invalid ParallelConsumers; the settings model and the API server judge the same corpus."""

import copy
from dataclasses import dataclass
from typing import Any

from parallel_consumer_runtime.settings import FORBIDDEN_KEYS, MANAGED_KEYS

Manifest = dict[str, Any]


class _Remove:
    """Marks a field to take away."""


REMOVE = _Remove()


def manifest(name: str = "orders", **changes: Any) -> Manifest:
    """Return a minimal valid object with fields set by path, `__` for dots: `spec__kafka__topics=["a"]`."""
    return changed(
        {
            "apiVersion": "parallelconsumer.io/v1alpha1",
            "kind": "ParallelConsumer",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "image": "orders:1",
                "handler": "orders.handlers:on_order",
                "kafka": {"bootstrapServers": "kafka:9092", "groupId": "orders", "topics": ["orders"]},
            },
        },
        {path.replace("__", "."): value for path, value in changes.items()},
    )


def changed(original: Manifest, changes: dict[str, Any]) -> Manifest:
    """Return a copy with each dotted path set, or taken away for REMOVE."""
    result = copy.deepcopy(original)
    for path, value in changes.items():
        *parents, last = path.split(".")
        place = result
        for part in parents:
            place = place.setdefault(part, {})
        if isinstance(value, _Remove):
            place.pop(last, None)
        else:
            place[last] = value
    return result


@dataclass(frozen=True)
class Case:
    """One manifest and, when it is to be refused, the path that the refusal names, and what it says where that matters."""

    title: str
    changes: dict[str, Any]
    path: str | None = None
    says: str | None = None

    @property
    def manifest(self) -> Manifest:
        """The whole object."""
        return changed(manifest(), self.changes)


_PROCESSING = "spec.processing"
_CONCURRENCY = "spec.processing.concurrency"
_SPARK_JOBS = "spec.sparkJobs"
SPARK_ENTRY: Manifest = {
    "name": "archive",
    "image": "spark:1",
    "mainApplicationFile": "local:///opt/parallel-consumer/archive.py",
    "trigger": {"offsets": 100_000, "interval": "10m"},
}
"""A minimal valid entry."""

VALID = [
    Case("spark job over the input", {_SPARK_JOBS: [SPARK_ENTRY]}),
    Case(
        "spark jobs over everything",
        {
            "spec.results": {"topic": "results"},
            "spec.processing.deadLetter": {"topic": "dead"},
            _SPARK_JOBS: [
                {**SPARK_ENTRY, "source": "Results", "from": "Earliest", "trigger": {"schedule": "0 3 * * *"}},
                {**SPARK_ENTRY, "name": "dead", "source": "DeadLetters", "trigger": {"onDrain": True}, "suspend": True},
                {
                    **SPARK_ENTRY,
                    "name": "by-hand",
                    "trigger": {"manual": "1"},
                    "onDataLoss": "Skip",
                    "maxOffsetsPerWindow": 1000,
                    "executor": {"instances": 3, "memory": "2g"},
                    "sparkConf": {"spark.sql.shuffle.partitions": "8"},
                    "restartPolicy": {"type": "OnFailure"},
                },
            ],
        },
    ),
    Case("minimal", {}),
    Case("pattern instead of topics", {"spec.kafka.topics": REMOVE, "spec.kafka.topicPattern": "^orders-.*"}),
    Case("nulls where a field may be left out", {"spec.results": None, "spec.kafka.topicPattern": None}),
    Case("empty processing", {_PROCESSING: {}}),
    Case("fixed concurrency", {_CONCURRENCY: {"fixed": 64}}),
    Case("fixed concurrency beside nulls", {_CONCURRENCY: {"fixed": 64, "min": None, "max": None}}),
    Case("adapted concurrency", {_CONCURRENCY: {"min": 8, "max": 500}}),
    Case("adapted concurrency of one value", {_CONCURRENCY: {"min": 8, "max": 8}}),
    Case("most concurrency", {_CONCURRENCY: {"fixed": 10_000}}),
    Case(
        "limited attempts with dead letters",
        {f"{_PROCESSING}.retry": {"maxAttempts": 5}, f"{_PROCESSING}.deadLetter": {"topic": "dead"}},
    ),
    Case("dead letters without a limit", {f"{_PROCESSING}.deadLetter": {"topic": "dead"}}),
    Case("compound duration", {"spec.kafka.sessionTimeout": "1m30s"}),
    Case("fractional duration", {f"{_PROCESSING}.commitInterval": "0.5s"}),
    Case("eager assignor", {"spec.kafka.assignor": "RoundRobin"}),
    Case("the new group protocol", {"spec.kafka.groupProtocol": "Consumer", "spec.kafka.assignor": "Range"}),
    Case("least session", {"spec.kafka.sessionTimeout": "6s"}),
    Case("longest session", {"spec.kafka.sessionTimeout": "30m"}),
    Case("least commit interval", {f"{_PROCESSING}.commitInterval": "10ms"}),
    Case("no draining", {f"{_PROCESSING}.drainTimeout": "0s"}),
    Case("batches", {f"{_PROCESSING}.batch": {"size": 16, "minimum": 4, "linger": "50ms"}}),
    Case(
        "batches of a key", {f"{_PROCESSING}.batch": {"size": 2, "sameKey": True}, _CONCURRENCY: {"min": 1, "max": 2}}
    ),
    Case("rates", {f"{_PROCESSING}.rateLimit": {"records": 100, "recordsPerPartition": -1, "recordsPerKey": 0.5}}),
    Case("rates of nothing", {f"{_PROCESSING}.rateLimit": {"records": 0}}),
    Case("ignored keys", {f"{_PROCESSING}.ignoredKeys": ["customer-17", "base64:AAE="]}),
    Case("scheduled records", {f"{_PROCESSING}.scheduledTimeHeader": "not-before"}),
    Case("deferral", {f"{_PROCESSING}.deferral": {"timeout": "5m"}}),
    Case("sub-partitions", {f"{_PROCESSING}.subPartitions": {"by": "RoundRobin", "count": 7}}),
    Case("sub-partitions by function", {f"{_PROCESSING}.subPartitions": {"by": "Function", "function": "a.b:c"}}),
    Case("retry topic", {f"{_PROCESSING}.retryTopic": {"topic": "orders-retry"}}),
    Case(
        "dead letters with a stop",
        {f"{_PROCESSING}.deadLetter": {"topic": "dead", "stop": {"maxConsecutive": 10, "maxRatio": 0.5}}},
    ),
    Case("commits by count", {f"{_PROCESSING}.commitRecords": 500, f"{_PROCESSING}.commitMode": "Sync"}),
    Case("transactions", {f"{_PROCESSING}.commitMode": "Transactional", f"{_PROCESSING}.commitInterval": "10s"}),
    Case("paused", {f"{_PROCESSING}.paused": True}),
    Case(
        "producer",
        {"spec.producer": {"partitioner": "Crc32", "linger": "0s", "compression": "Zstd", "bufferBytes": "8Mi"}},
    ),
    Case("partition order on threads", {f"{_PROCESSING}.ordering": "Partition", f"{_PROCESSING}.worker": "Thread"}),
    Case("handler processes", {f"{_PROCESSING}.worker": "Process", f"{_PROCESSING}.processes": 4}),
    Case("free client configuration", {"spec.kafka.consumerConfig": {"fetch.min.bytes": "1024"}}),
    Case("no pods", {"spec.replicas": 0}),
    Case("a thousand pods", {"spec.replicas": 1000}),
    Case("results", {"spec.results": {"topic": "quotes"}}),
    Case(
        "environment by reference",
        {"spec.env": [{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]},
    ),
    Case("resources", {"spec.resources": {"requests": {"cpu": "500m", "memory": "256Mi"}}}),
    Case(
        "resources in every form", {"spec.resources": {"limits": {"cpu": 2, "memory": "1.5e9", "hugepages-2Mi": "1Gi"}}}
    ),
    Case(
        "template",
        {"spec.template": {"metadata": {"labels": {"team": "x"}}, "spec": {"nodeSelector": {"disk": "ssd"}}}},
    ),
    Case("pull policy", {"spec.imagePullPolicy": "Never"}),
    Case("buffer", {f"{_PROCESSING}.buffer": {"records": 10, "recordsPerPartition": 5, "bytes": "1Mi"}}),
]

INVALID = [
    Case("spark job that is never due", {_SPARK_JOBS: [{**SPARK_ENTRY, "trigger": {}}]}, f"{_SPARK_JOBS}[0].trigger"),
    Case("spark job over no results", {_SPARK_JOBS: [{**SPARK_ENTRY, "source": "Results"}]}, "spec"),
    Case("spark job over no dead letters", {_SPARK_JOBS: [{**SPARK_ENTRY, "source": "DeadLetters"}]}, "spec"),
    Case("spark jobs of one name", {_SPARK_JOBS: [SPARK_ENTRY, SPARK_ENTRY]}, "spec"),
    Case("spark job without a name", {_SPARK_JOBS: [{**SPARK_ENTRY, "name": ""}]}, f"{_SPARK_JOBS}[0].name"),
    Case(
        "spark job of an unknown source",
        {_SPARK_JOBS: [{**SPARK_ENTRY, "source": "Output"}]},
        f"{_SPARK_JOBS}[0].source",
    ),
    Case(
        "spark job too often",
        {_SPARK_JOBS: [{**SPARK_ENTRY, "trigger": {"interval": "10ms"}}]},
        f"{_SPARK_JOBS}[0].trigger.interval",
    ),
    Case(
        "spark job with a managed property",
        {_SPARK_JOBS: [{**SPARK_ENTRY, "sparkConf": {"spark.master": "local"}}]},
        f"{_SPARK_JOBS}[0].sparkConf",
    ),
    Case("unknown field", {"spec.parallelism": 4}, "spec.parallelism"),
    Case("unknown nested field", {"spec.kafka.topic": "orders"}, "spec.kafka.topic"),
    Case("no image", {"spec.image": REMOVE}, "spec.image"),
    Case("empty image", {"spec.image": ""}, "spec.image"),
    Case("no handler", {"spec.handler": REMOVE}, "spec.handler"),
    Case("handler without a function", {"spec.handler": "orders.handlers"}, "spec.handler"),
    Case("no kafka", {"spec.kafka": REMOVE}, "spec.kafka"),
    Case("no brokers", {"spec.kafka.bootstrapServers": REMOVE}, "spec.kafka.bootstrapServers"),
    Case("no group", {"spec.kafka.groupId": REMOVE}, "spec.kafka.groupId"),
    Case("neither topics nor pattern", {"spec.kafka.topics": REMOVE}, "spec.kafka"),
    Case("topics and pattern", {"spec.kafka.topicPattern": "^o"}, "spec.kafka"),
    Case("no topic in the list", {"spec.kafka.topics": []}, "spec.kafka.topics"),
    Case("bad topic name", {"spec.kafka.topics": ["a b"]}, "spec.kafka.topics[0]"),
    Case(
        "pattern without anchor",
        {"spec.kafka.topics": REMOVE, "spec.kafka.topicPattern": "orders"},
        "spec.kafka.topicPattern",
    ),
    Case("unknown reset", {"spec.kafka.autoOffsetReset": "earliest"}, "spec.kafka.autoOffsetReset"),
    Case("unknown assignor", {"spec.kafka.assignor": "Sticky"}, "spec.kafka.assignor"),
    Case("unknown protocol", {"spec.kafka.groupProtocol": "consumer"}, "spec.kafka.groupProtocol"),
    Case(
        "assignor of the other protocol",
        {"spec.kafka.groupProtocol": "Consumer", "spec.kafka.assignor": "RoundRobin"},
        "spec.kafka",
    ),
    Case("session too short", {"spec.kafka.sessionTimeout": "5s"}, "spec.kafka.sessionTimeout"),
    Case("session too long", {"spec.kafka.sessionTimeout": "31m"}, "spec.kafka.sessionTimeout"),
    Case("session without unit", {"spec.kafka.sessionTimeout": "45"}, "spec.kafka.sessionTimeout"),
    Case("session as a number", {"spec.kafka.sessionTimeout": 45}, "spec.kafka.sessionTimeout"),
    Case("too many pods", {"spec.replicas": 1001}, "spec.replicas"),
    Case("negative pods", {"spec.replicas": -1}, "spec.replicas"),
    Case("fixed and min", {_CONCURRENCY: {"fixed": 4, "min": 2}}, _CONCURRENCY),
    Case("fixed and both", {_CONCURRENCY: {"fixed": 4, "min": 2, "max": 8}}, _CONCURRENCY),
    Case("min alone", {_CONCURRENCY: {"min": 2}}, _CONCURRENCY),
    Case("max alone", {_CONCURRENCY: {"max": 2}}, _CONCURRENCY),
    Case("empty concurrency", {_CONCURRENCY: {}}, _CONCURRENCY),
    Case("min above max", {_CONCURRENCY: {"min": 9, "max": 8}}, _CONCURRENCY),
    Case("no concurrency", {_CONCURRENCY: {"fixed": 0}}, f"{_CONCURRENCY}.fixed"),
    Case("too much concurrency", {_CONCURRENCY: {"fixed": 10_001}}, f"{_CONCURRENCY}.fixed"),
    Case("attempts without dead letters", {f"{_PROCESSING}.retry": {"maxAttempts": 5}}, _PROCESSING),
    Case(
        "backoff upside down",
        {f"{_PROCESSING}.retry": {"initialBackoff": "1m", "maxBackoff": "1s"}},
        f"{_PROCESSING}.retry",
    ),
    Case(
        "backoff above the default maximum", {f"{_PROCESSING}.retry": {"initialBackoff": "1m"}}, f"{_PROCESSING}.retry"
    ),
    Case("commits too often", {f"{_PROCESSING}.commitInterval": "9ms"}, f"{_PROCESSING}.commitInterval"),
    Case("commits too rare", {f"{_PROCESSING}.commitInterval": "61s"}, f"{_PROCESSING}.commitInterval"),
    Case("drains too long", {f"{_PROCESSING}.drainTimeout": "2h"}, f"{_PROCESSING}.drainTimeout"),
    Case("batch without a size", {f"{_PROCESSING}.batch": {}}, f"{_PROCESSING}.batch.size"),
    Case("batch upside down", {f"{_PROCESSING}.batch": {"size": 2, "minimum": 3}}, f"{_PROCESSING}.batch"),
    Case("batch above the default concurrency", {f"{_PROCESSING}.batch": {"size": 17}}, _PROCESSING),
    Case(
        "batch above the concurrency",
        {f"{_PROCESSING}.batch": {"size": 9}, _CONCURRENCY: {"min": 1, "max": 8}},
        _PROCESSING,
    ),
    Case(
        "batch of no key",
        {f"{_PROCESSING}.batch": {"size": 2, "sameKey": True}, f"{_PROCESSING}.ordering": "Unordered"},
        _PROCESSING,
    ),
    Case("batch with deferral", {f"{_PROCESSING}.batch": {"size": 2}, f"{_PROCESSING}.deferral": {}}, _PROCESSING),
    Case(
        "linger for too long",
        {f"{_PROCESSING}.batch": {"size": 2, "linger": "61s"}},
        f"{_PROCESSING}.batch.linger",
    ),
    Case("rate below none", {f"{_PROCESSING}.rateLimit": {"records": -2}}, f"{_PROCESSING}.rateLimit.records"),
    Case("deferral without end", {f"{_PROCESSING}.deferral": {"timeout": "25h"}}, f"{_PROCESSING}.deferral.timeout"),
    Case(
        "sub-partitions of partitions",
        {f"{_PROCESSING}.subPartitions": {}, f"{_PROCESSING}.ordering": "Partition"},
        _PROCESSING,
    ),
    Case(
        "sub-partitions by no function",
        {f"{_PROCESSING}.subPartitions": {"by": "Function"}},
        f"{_PROCESSING}.subPartitions",
    ),
    Case(
        "sub-partitions by hash with a function",
        {f"{_PROCESSING}.subPartitions": {"function": "a:b"}},
        f"{_PROCESSING}.subPartitions",
    ),
    Case("retry topic without topic", {f"{_PROCESSING}.retryTopic": {}}, f"{_PROCESSING}.retryTopic.topic"),
    Case(
        "retry topic upside down",
        {f"{_PROCESSING}.retryTopic": {"topic": "r", "initialBackoff": "2h"}},
        f"{_PROCESSING}.retryTopic",
    ),
    Case(
        "stop without a condition",
        {f"{_PROCESSING}.deadLetter": {"topic": "dead", "stop": {}}},
        f"{_PROCESSING}.deadLetter.stop",
    ),
    Case(
        "stop at nothing",
        {f"{_PROCESSING}.deadLetter": {"topic": "dead", "stop": {"maxRatio": 0}}},
        f"{_PROCESSING}.deadLetter.stop.maxRatio",
    ),
    Case(
        "transactions that stay open",
        {f"{_PROCESSING}.commitMode": "Transactional", f"{_PROCESSING}.commitInterval": "11s"},
        _PROCESSING,
    ),
    Case("unknown commit mode", {f"{_PROCESSING}.commitMode": "Auto"}, f"{_PROCESSING}.commitMode"),
    Case("slow at once", {f"{_PROCESSING}.slowAfter": "1ms"}, f"{_PROCESSING}.slowAfter"),
    Case("stuck at once", {f"{_PROCESSING}.stuckAfter": "1ms"}, f"{_PROCESSING}.stuckAfter"),
    Case("unknown ordering", {f"{_PROCESSING}.ordering": "key"}, f"{_PROCESSING}.ordering"),
    Case("unknown worker", {f"{_PROCESSING}.worker": "Fork"}, f"{_PROCESSING}.worker"),
    Case("no processes", {f"{_PROCESSING}.processes": 0}, f"{_PROCESSING}.processes"),
    Case("no buffer", {f"{_PROCESSING}.buffer": {"records": 0}}, f"{_PROCESSING}.buffer.records"),
    Case("bad size", {f"{_PROCESSING}.buffer": {"bytes": "64MB"}}, f"{_PROCESSING}.buffer.bytes"),
    Case("pods in quotes", {"spec.replicas": "2"}, "spec.replicas"),
    Case("a truth as a count", {"spec.replicas": True}, "spec.replicas"),
    Case("rate in quotes", {f"{_PROCESSING}.rateLimit": {"records": "5"}}, f"{_PROCESSING}.rateLimit.records"),
    Case("paused in a word", {f"{_PROCESSING}.paused": "yes"}, f"{_PROCESSING}.paused"),
    Case("interval as a number", {f"{_PROCESSING}.commitInterval": 0.5}, f"{_PROCESSING}.commitInterval"),
    Case("size as a number", {f"{_PROCESSING}.buffer": {"bytes": 65536}}, f"{_PROCESSING}.buffer.bytes"),
    Case("group as a number", {"spec.kafka.groupId": 7}, "spec.kafka.groupId"),
    Case("results without topic", {"spec.results": {}}, "spec.results.topic"),
    Case(
        "dead letters to a bad topic",
        {f"{_PROCESSING}.deadLetter": {"topic": "a/b"}},
        f"{_PROCESSING}.deadLetter.topic",
    ),
    Case("resources in words", {"spec.resources": {"limits": {"cpu": "plenty"}}}, "spec.resources.limits.cpu"),
    Case("half a processor unquoted", {"spec.resources": {"limits": {"cpu": 0.5}}}, "spec.resources.limits.cpu"),
    Case("less than nothing", {"spec.resources": {"requests": {"cpu": -1}}}, "spec.resources.requests.cpu"),
    Case("unknown part of resources", {"spec.resources": {"request": {"cpu": 1}}}, "spec.resources.request"),
    Case("unknown partitioner", {"spec.producer": {"partitioner": "murmur2"}}, "spec.producer.partitioner"),
    Case("too many in flight", {"spec.producer": {"maxInFlight": 6}}, "spec.producer.maxInFlight"),
    Case("no delivery", {"spec.producer": {"deliveryTimeout": "0s"}}, "spec.producer.deliveryTimeout"),
    Case("unknown pull policy", {"spec.imagePullPolicy": "Sometimes"}, "spec.imagePullPolicy"),
    Case("environment as a map", {"spec.env": {"A": "b"}}, "spec.env"),
    Case("configuration value as a number", {"spec.kafka.config": {"linger.ms": 5}}, "spec.kafka.config.linger.ms"),
    *(
        Case(f"{place} sets {key}", {f"spec.kafka.{place}": {key: "x"}}, f"spec.kafka.{place}")
        for place, keys in (
            ("config", [*MANAGED_KEYS, *FORBIDDEN_KEYS]),
            ("consumerConfig", ["group.id", "plugin.library.paths"]),
            ("producerConfig", ["acks", "sasl.password"]),
        )
        for key in keys
    ),
]
