"""What matters of a Job and of Spark's pods: pure readings of their manifests."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Self

from parallel_consumer_operator.api import SparkReason
from parallel_consumer_operator.desired.naming import Manifest
from parallel_consumer_operator.desired.spark.naming import (
    ATTEMPT,
    ENDED,
    ENDED_AT,
    ENDED_LOG,
    ENDED_MESSAGE,
    FAILURES,
)
from parallel_consumer_operator.pods import OVERDUE
from parallel_consumer_operator.untyped import as_list, at
from parallel_consumer_operator.wording import short

_WAITING_IS_NORMAL = {"ContainerCreating", "PodInitializing"}
_IMAGE_REASONS = {
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "ImageInspectError",
    "RegistryUnavailable",
    "SignatureValidationFailed",
}
_APPLICATION_LABEL = "spark-app-selector"
"""Spark's own label of an executor: the application's id."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt, as its Job tells."""

    name: str
    uid: str
    number: int
    failures: int
    """Attempts that had failed before this one."""
    created_at: datetime
    began_at: datetime
    """When its Job's controller began it, or began it again after somebody else's suspension; else when it was created."""
    suspended: bool
    complete: bool
    failed: bool
    finished_at: datetime | None
    """When the Job became complete or failed."""
    said: str
    """Why the Job failed, in the words of its controller."""
    ended: SparkReason | None
    """Why the operator stopped it, None when it did not."""
    ended_at: datetime | None
    ended_message: str
    ended_log: str

    @classmethod
    def of(cls, manifest: Manifest) -> Self:
        """Read one Job of ours."""
        metadata = manifest["metadata"]
        notes = at(metadata, "annotations")
        conditions = {at(item, "type"): item for item in as_list(at(manifest, "status", "conditions")) or []}
        done = {kind for kind, item in conditions.items() if at(item, "status") == "True"} & {"Complete", "Failed"}
        last = conditions.get("Complete" if "Complete" in done else "Failed")
        ended: Any = at(notes, ENDED)
        created_at = _time(metadata["creationTimestamp"]) or datetime.min.replace(tzinfo=UTC)
        return cls(
            name=metadata["name"],
            uid=metadata["uid"],
            number=_number(at(metadata, "labels", ATTEMPT)),
            failures=_number(at(notes, FAILURES)),
            created_at=created_at,
            began_at=_time(at(manifest, "status", "startTime")) or created_at,
            suspended=at(manifest, "spec", "suspend") is True,
            complete="Complete" in done,
            failed="Failed" in done and "Complete" not in done,
            finished_at=_time(at(last, "lastTransitionTime")) if done else None,
            said=short(at(last, "message")) if done else "",
            ended=SparkReason(ended) if ended in set(SparkReason) else None,
            ended_at=_time(at(notes, ENDED_AT)),
            ended_message=str(at(notes, ENDED_MESSAGE) or ""),
            ended_log=str(at(notes, ENDED_LOG) or ""),
        )


@dataclass(frozen=True, slots=True)
class SparkPod:
    """A driver or an executor."""

    name: str
    uid: str
    attempt: int
    image: str
    memory: str | None
    """The container's memory limit as it stands there."""
    phase: str
    node: str | None
    created_at: datetime
    started_at: datetime | None
    """When the container began to run, None when it never did."""
    finished_at: datetime | None
    exit_code: int | None
    exit_reason: str
    """The kubelet's word for the container's end, such as OOMKilled."""
    said: str
    """The pod's or the container's message on its end or on its waiting."""
    waiting: str
    """The kubelet's word for what the container waits for, empty when that is normal."""
    unschedulable: str
    """Why no node takes it, empty when one did."""
    disruption: str
    """Why the cluster ends it, empty when it does not."""
    ends_by: datetime | None
    """When its deletion was to be done, grace included; None while nobody deleted it."""
    application_id: str | None

    @classmethod
    def of(cls, manifest: Manifest, container: str) -> Self:
        """Read a pod by the container that matters."""
        metadata, status = manifest["metadata"], manifest.get("status")
        state = at(_container_status(status, container), "state")
        ended, waiting = at(state, "terminated"), at(state, "waiting")
        began = _time(at(ended, "startedAt") or at(state, "running", "startedAt"))
        # A container that could not be started has a start time all the same: that of 1970.
        started_at = None if at(ended, "reason") in {"StartError", "ContainerCannotRun"} else began
        conditions = as_list(at(status, "conditions")) or []
        spec = next((c for c in as_list(at(manifest, "spec", "containers")) or [] if at(c, "name") == container), None)
        why = at(waiting, "reason")
        return cls(
            name=metadata["name"],
            uid=metadata["uid"],
            attempt=_number(at(metadata, "labels", ATTEMPT)),
            image=str(at(spec, "image") or "?"),
            memory=at(spec, "resources", "limits", "memory"),
            phase=str(at(status, "phase") or "Pending"),
            node=at(manifest, "spec", "nodeName"),
            created_at=_time(metadata["creationTimestamp"]) or datetime.min.replace(tzinfo=UTC),
            started_at=started_at,
            finished_at=_time(at(ended, "finishedAt")),
            exit_code=at(ended, "exitCode"),
            exit_reason=str(at(ended, "reason") or at(status, "reason") or ""),
            said=short(at(ended, "message") or at(waiting, "message") or at(status, "message")),
            waiting="" if why is None or why in _WAITING_IS_NORMAL else str(why),
            unschedulable=_condition(conditions, "PodScheduled", "Unschedulable"),
            disruption=_condition(conditions, "DisruptionTarget", None),
            ends_by=_time(at(metadata, "deletionTimestamp")),
            application_id=at(metadata, "labels", _APPLICATION_LABEL),
        )

    @property
    def terminating(self) -> bool:
        """Whether somebody deleted it."""
        return self.ends_by is not None

    def overdue(self, now: datetime) -> str:
        """Return what a person must do about a pod that was to end and did not, nothing while it may still end."""
        if self.ends_by is None or now < self.ends_by + OVERDUE:
            return ""
        return (
            f"; it was to end by {self.ends_by:%Y-%m-%dT%H:%M:%SZ} and did not: node {self.node} may be lost; "
            "where that is certain, kubectl delete pod --force"
        )

    @property
    def running(self) -> bool:
        """Whether the container's process runs."""
        return self.phase == "Running" and self.started_at is not None and self.exit_code is None

    @property
    def ended(self) -> bool:
        """Whether it will never run again."""
        return self.phase in {"Succeeded", "Failed"}

    @property
    def image_trouble(self) -> bool:
        """Whether the image is what it waits for."""
        return self.waiting in _IMAGE_REASONS


@dataclass(frozen=True, slots=True)
class Seen:
    """One reading of everything that belongs to a SparkJob."""

    attempts: Sequence[Attempt] = ()
    """In the order of their numbers."""
    drivers: Sequence[SparkPod] = ()
    """Of all attempts."""
    executors: Sequence[SparkPod] = ()
    """Of all attempts."""
    log: str | None = None
    """The end of the newest driver's log; None when it was not read."""
    refusals: Sequence[str] | None = None
    """What the API server said against the newest attempt's driver; None when nobody asked."""

    def driver_of(self, attempt: int) -> SparkPod | None:
        """Return an attempt's driver, the newest one where there are several."""
        pods = [pod for pod in self.drivers if pod.attempt == attempt]
        return max(pods, key=lambda pod: pod.created_at, default=None)

    def executors_of(self, attempt: int) -> list[SparkPod]:
        """Return an attempt's executors."""
        return [pod for pod in self.executors if pod.attempt == attempt]

    def left_behind(self) -> list[SparkPod]:
        """Return the executors whose driver has ended and that have not: one that no node took would wait for ever."""
        over = {driver.attempt for driver in self.drivers if driver.ended}
        over -= {driver.attempt for driver in self.drivers if not driver.ended}
        return [pod for pod in self.executors if pod.attempt in over and not pod.ended and not pod.terminating]

    def with_log(self, log: str) -> "Seen":
        """Return the same with the log that was asked for."""
        return replace(self, log=log)

    def with_refusals(self, refusals: Sequence[str]) -> "Seen":
        """Return the same with the refusals that were asked for."""
        return replace(self, refusals=refusals)


def _container_status(status: Any, container: str) -> Any:
    statuses = as_list(at(status, "containerStatuses")) or []
    # An init container that waits or failed holds up the one that matters.
    for found in as_list(at(status, "initContainerStatuses")) or []:
        waits = at(found, "state", "waiting", "reason")
        if at(found, "state", "terminated", "exitCode") or (waits and waits not in _WAITING_IS_NORMAL):
            return found
    return next((item for item in statuses if at(item, "name") == container), None)


def _condition(conditions: list[Any], kind: str, reason: str | None) -> str:
    for item in conditions:
        if at(item, "type") != kind or at(item, "status") != ("False" if reason else "True"):
            continue
        if reason is None or at(item, "reason") == reason:
            return (
                f"{at(item, 'reason')}: {short(at(item, 'message'))}" if reason is None else short(at(item, "message"))
            )
    return ""


def _number(value: Any) -> int:
    return int(value) if isinstance(value, str) and value.isdigit() else 0


def _time(value: Any) -> datetime | None:
    if not isinstance(value, str) or not value:
        return None
    return datetime.fromisoformat(value).astimezone(UTC)
