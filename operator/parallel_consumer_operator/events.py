"""Kubernetes Events, on transitions only: what happened, for `kubectl describe`."""

from datetime import UTC, datetime

from parallel_consumer_operator.api import (
    API_VERSION_OF_KIND,
    Condition,
    ConditionStatus,
    ConditionType,
    Identity,
    SparkConditionType,
    SparkReason,
)
from parallel_consumer_operator.desired.naming import MANAGER, Manifest

_NOTE_LENGTH_MAX = 1024

_GOOD: dict[str, ConditionStatus] = {
    ConditionType.READY: ConditionStatus.TRUE,
    ConditionType.CONCURRENCY_APPLIED: ConditionStatus.TRUE,
    ConditionType.KAFKA_REACHABLE: ConditionStatus.TRUE,
    SparkConditionType.ACCEPTED: ConditionStatus.TRUE,
    SparkConditionType.RUNNING: ConditionStatus.TRUE,
    SparkConditionType.SUCCEEDED: ConditionStatus.TRUE,
}
"""The conditions worth an event, and the answer that is good news. Reconciling changes too often to tell."""

_NO_TROUBLE: set[str] = {SparkReason.WAITING, SparkReason.SUSPENDED, SparkReason.FINISHED}
"""Reasons that are as they should be, although the answer is no."""


def transition_event(owner: Identity, change: Condition, now: datetime, instance: str) -> Manifest | None:
    """Return the Event that tells of a condition's change, None when it is not worth one.

    Args:
        owner: whom it is about.
        change: the new answer.
        now: when.
        instance: which operator says so.
    """
    good = _GOOD.get(change.type)
    if good is None or change.status == ConditionStatus.UNKNOWN:
        return None
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"generateName": f"{owner.name}-", "namespace": owner.namespace},
        "eventTime": now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "reportingController": MANAGER,
        "reportingInstance": instance[:128],
        "action": "Reconcile",
        "type": "Normal" if change.status == good or change.reason in _NO_TROUBLE else "Warning",
        "reason": change.reason,
        "note": f"{change.type}={change.status}: {change.message}"[:_NOTE_LENGTH_MAX],
        "regarding": {
            "apiVersion": API_VERSION_OF_KIND,
            "kind": owner.kind,
            "namespace": owner.namespace,
            "name": owner.name,
            "uid": owner.uid,
        },
    }
