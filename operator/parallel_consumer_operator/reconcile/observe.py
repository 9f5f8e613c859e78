"""Reads the world around one object: its children, its pods, what they tell. Live, never from a cache."""

import asyncio
from dataclasses import dataclass
from datetime import datetime

from parallel_consumer_operator.api import Identity
from parallel_consumer_operator.desired import selector_of
from parallel_consumer_operator.desired.naming import Manifest, config_map_name, service_name
from parallel_consumer_operator.kube import Kube
from parallel_consumer_operator.pods import Pod
from parallel_consumer_operator.reconcile.members import MemberReader
from parallel_consumer_operator.untyped import as_list, at
from parallel_consumer_runtime.settings import MemberStatus


@dataclass(frozen=True, slots=True)
class Observation:
    """One reading."""

    children: dict[str, Manifest]
    """By kind; what is missing is not in it."""
    pods: list[Pod]
    """In the order of their ordinals."""
    members: dict[str, MemberStatus]
    """By pod name; who does not answer is not in it."""

    @property
    def template_known(self) -> bool:
        """Whether the StatefulSet's controller has seen what stands there: a pod deleted before comes back as it was."""
        child = self.children.get("StatefulSet")
        return int(at(child, "status", "observedGeneration") or 0) >= int(at(child, "metadata", "generation") or 0)

    @property
    def stateful_replicas(self) -> int | None:
        """The StatefulSet's replicas, None when there is none."""
        child = self.children.get("StatefulSet")
        return None if child is None else int(at(child, "spec", "replicas") or 0)


async def observe(kube: Kube, reader: MemberReader, owner: Identity, now: datetime) -> Observation:
    """Read everything that belongs to an object, at a time of the wall clock.

    Raises:
        OperatorError: when the API server does not let us.
    """
    kinds = {
        "ConfigMap": config_map_name(owner.name),
        "ServiceAccount": config_map_name(owner.name),
        "Service": service_name(owner.name),
        "PodDisruptionBudget": owner.name,
        "StatefulSet": owner.name,
    }
    pods, found = await asyncio.gather(
        kube.list("Pod", owner.namespace, selector_of(owner.name)),
        asyncio.gather(*(kube.get(kind, owner.namespace, name) for kind, name in kinds.items())),
    )
    children = {kind: child for kind, child in zip(kinds, found, strict=True) if child is not None}
    ours = sorted((Pod.of(pod, now) for pod in pods if _is_controlled(pod)), key=lambda pod: pod.ordinal)
    return Observation(children, ours, await reader.read(ours))


def foreign_children(owner: Identity, children: dict[str, Manifest]) -> list[str]:
    """Return the children's names that are taken by objects of someone else, as `Kind name`."""
    return [f"{kind} {at(child, 'metadata', 'name')}" for kind, child in children.items() if not owned(owner, child)]


def owned(owner: Identity, child: Manifest) -> bool:
    """Whether an object belongs to an owner: by uid, because names are used again."""
    references = as_list(at(child, "metadata", "ownerReferences")) or []
    return any(at(reference, "uid") == owner.uid for reference in references)


def _is_controlled(pod: Manifest) -> bool:
    references = as_list(at(pod, "metadata", "ownerReferences")) or []
    return any(at(item, "kind") == "StatefulSet" and at(item, "controller") for item in references)
