"""What matters of a pod: pure readings of its manifest, and its trouble in words."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from parallel_consumer_operator.desired.naming import CONTAINER, Annotations, Manifest
from parallel_consumer_operator.untyped import as_list, at

OVERDUE = timedelta(seconds=60)
"""How long a pod may be there after its grace has ended: a kubelet that lives takes seconds."""

_MESSAGE_LENGTH_MAX = 300

_WAITING_IS_NORMAL = {"ContainerCreating", "PodInitializing"}


@dataclass(frozen=True, slots=True)
class Pod:
    """One member's pod."""

    name: str
    uid: str
    ordinal: int
    ip: str | None
    running: bool
    """Whether the consumer container's process runs now; one that does not holds no record."""
    ready: bool
    terminating: bool
    template_hash: str | None
    resources_hash: str | None
    problem: str | None
    """Why it does not run, or does not end, in words; None when it runs or is on its way."""

    @classmethod
    def of(cls, manifest: Manifest, now: datetime) -> Self:
        """Read one pod of a StatefulSet, whose name ends in its ordinal, at a time of the wall clock."""
        metadata = manifest["metadata"]
        suffix = metadata["name"].rpartition("-")[2]
        conditions = as_list(at(manifest, "status", "conditions")) or []
        ready = any(at(item, "type") == "Ready" and at(item, "status") == "True" for item in conditions)
        terminating = "deletionTimestamp" in metadata
        return cls(
            name=metadata["name"],
            uid=metadata["uid"],
            ordinal=int(suffix) if suffix.isdigit() else 0,
            ip=at(manifest, "status", "podIP"),
            running=any(
                at(container, "name") == CONTAINER and at(container, "state", "running") is not None
                for container in as_list(at(manifest, "status", "containerStatuses")) or []
            ),
            ready=ready and not terminating,
            terminating=terminating,
            template_hash=at(metadata, "annotations", Annotations.TEMPLATE),
            resources_hash=at(metadata, "annotations", Annotations.RESOURCES),
            problem=_overdue(manifest, now) if terminating else None if ready else _problem(metadata["name"], manifest),
        )

    def outdated(self, template_hash: str, resources_hash: str) -> bool:
        """Whether the pod runs another template than the wanted one."""
        return (self.template_hash, self.resources_hash) != (template_hash, resources_hash)


def _overdue(manifest: Manifest, now: datetime) -> str | None:
    metadata = manifest["metadata"]
    ends_at = datetime.fromisoformat(metadata["deletionTimestamp"]).astimezone(UTC)  # the grace is in it
    if now < ends_at + OVERDUE:
        return None
    return (
        f"pod {metadata['name']} was to end by {ends_at:%Y-%m-%dT%H:%M:%SZ} and did not, so no other takes its place: node "
        f"{at(manifest, 'spec', 'nodeName')} may be lost; where that is certain, kubectl delete pod --force"
    )


def _problem(name: str, manifest: Manifest) -> str | None:
    status = manifest.get("status")
    for kind in ("initContainerStatuses", "containerStatuses"):
        for container in as_list(at(status, kind)) or []:
            if words := _container_problem(container):
                return f"pod {name}, container {at(container, 'name')}: {words}"
    for condition in as_list(at(status, "conditions")) or []:
        if at(condition, "reason") == "Unschedulable":
            return f"pod {name}: no node takes it: {_short(at(condition, 'message'))}"
    if at(status, "phase") == "Failed":
        return f"pod {name}: {at(status, 'reason') or 'Failed'}: {_short(at(status, 'message'))}"
    return None


def _container_problem(container: Any) -> str | None:
    waiting = at(container, "state", "waiting", "reason")
    ended = at(container, "state", "terminated") or at(container, "lastState", "terminated")
    # A container that ended and starts again is in trouble all along, or its condition would flap with each try.
    if ended is not None and at(ended, "exitCode"):
        what = f"ended with status {at(ended, 'exitCode')}"
        if at(ended, "reason") not in {None, "Error"}:
            what += f" ({at(ended, 'reason')})"
        prefix = f"{waiting}: " if waiting and waiting not in _WAITING_IS_NORMAL else ""
        said = _short(at(ended, "message"))
        return f"{prefix}{what}" + (f": {said}" if said else "")
    if waiting is None or waiting in _WAITING_IS_NORMAL:
        return None
    return f"{waiting}: {_short(at(container, 'state', 'waiting', 'message'))}"


def _short(message: Any) -> str:
    text = " ".join(str(message or "").split())
    return text if len(text) <= _MESSAGE_LENGTH_MAX else text[:_MESSAGE_LENGTH_MAX] + "…"
