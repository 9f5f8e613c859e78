"""Reads the world around one SparkJob: its children, its attempts, their pods. Live, never from a cache."""

import asyncio
from dataclasses import dataclass

from parallel_consumer_operator.api import Identity
from parallel_consumer_operator.desired.naming import Manifest
from parallel_consumer_operator.desired.spark.naming import (
    DRIVER,
    EXECUTOR,
    ROLE,
    driver_service_name,
    spark_config_map_name,
    spark_selector,
)
from parallel_consumer_operator.kube import Kube
from parallel_consumer_operator.reconcile.observe import owned
from parallel_consumer_operator.sparkjob import Attempt, Seen, SparkPod
from parallel_consumer_operator.untyped import at


@dataclass(frozen=True, slots=True)
class SparkObservation:
    """One reading."""

    children: dict[str, Manifest]
    """ConfigMap and Service by kind; what is missing is not in it."""
    seen: Seen


async def observe_spark_job(kube: Kube, owner: Identity) -> SparkObservation:
    """Read everything that belongs to a SparkJob.

    Raises:
        OperatorError: when the API server does not let us.
    """
    selector = spark_selector(owner.name)
    names = {"ConfigMap": spark_config_map_name(owner.name), "Service": driver_service_name(owner.name)}
    jobs, pods, found = await asyncio.gather(
        kube.list("Job", owner.namespace, selector),
        kube.list("Pod", owner.namespace, selector),
        asyncio.gather(*(kube.get(kind, owner.namespace, name) for kind, name in names.items())),
    )
    ours = [job for job in jobs if owned(owner, job) and "deletionTimestamp" not in job["metadata"]]
    drivers = [pod for pod in pods if at(pod, "metadata", "labels", ROLE) == DRIVER]
    executors = [pod for pod in pods if at(pod, "metadata", "labels", ROLE) == EXECUTOR]
    seen = Seen(
        attempts=sorted(map(Attempt.of, ours), key=lambda attempt: attempt.number),
        drivers=[SparkPod.of(pod, DRIVER) for pod in drivers],
        executors=[SparkPod.of(pod, EXECUTOR) for pod in executors],
    )
    return SparkObservation({kind: child for kind, child in zip(names, found, strict=True) if child is not None}, seen)


async def refusals_about(kube: Kube, owner: Identity, uid: str) -> list[str]:
    """Return what was said against creating an object's pods, oldest first."""
    events = await kube.events_about(owner.namespace, uid)
    told = [event for event in events if at(event, "reason") == "FailedCreate"]
    told.sort(key=lambda event: str(at(event, "series", "lastObservedTime") or at(event, "eventTime") or ""))
    return [str(at(event, "note") or "") for event in told]
