"""Pure: a spec becomes what a pod reads. Used by the operator and by local runs, so that both mean the same."""

import hashlib
import json

from parallel_consumer_runtime.settings.runtime import LiveSettings, StaticSettings
from parallel_consumer_runtime.settings.spec import ParallelConsumerSpec


def render_static(name: str, spec: ParallelConsumerSpec) -> StaticSettings:
    """Return the half that is fixed for a pod's life."""
    processing = spec.processing
    return StaticSettings(
        name=name,
        handler=spec.handler,
        worker=processing.worker,
        processes=processing.processes,
        ordering=processing.ordering,
        kafka=spec.kafka,
        results_topic=spec.results.topic if spec.results else None,
        results_provenance=spec.results is not None and spec.results.provenance,
        sub_partitions=processing.sub_partitions,
        batch=processing.batch,
        dead_letter=processing.dead_letter,
        retry_topic=processing.retry_topic,
        deferral=processing.deferral,
        producer=spec.producer,
        monitoring=spec.monitoring,
        commit_mode=processing.commit_mode,
        drain_timeout=processing.drain_timeout,
    )


def render_live(spec: ParallelConsumerSpec, replicas: int) -> LiveSettings:
    """Return the half that running pods follow; its revision is a hash of its content.

    Args:
        spec: the whole spec.
        replicas: the ordinals that are to run now, which may differ from the spec's while scaling.
    """
    processing = spec.processing
    live = LiveSettings(
        revision="",
        replicas=replicas,
        concurrency=processing.concurrency,
        retry=processing.retry,
        buffer=processing.buffer,
        rate_limit=processing.rate_limit,
        ignored_keys=processing.ignored_keys,
        scheduled_time_header=processing.scheduled_time_header,
        slow_after=processing.slow_after,
        stuck_after=processing.stuck_after,
        commit_interval=processing.commit_interval,
        commit_records=processing.commit_records,
        paused=processing.paused,
    )
    content = json.dumps(live.model_dump(mode="json", by_alias=True), sort_keys=True)
    revision = hashlib.sha256(content.encode()).hexdigest()[:12]
    return live.model_copy(update={"revision": revision})
