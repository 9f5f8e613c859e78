"""Makes the world as wished: applies children that differ, nudges pods, restarts one. Sends nothing when all is well."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from parallel_consumer_operator.api import Identity
from parallel_consumer_operator.desired.naming import Annotations, Manifest, content_hash
from parallel_consumer_operator.kube import Kube
from parallel_consumer_operator.pods import Pod
from parallel_consumer_operator.reconcile.drift import covers, wish_changed, without_bookkeeping
from parallel_consumer_operator.reconcile.observe import Observation

_NUDGE_FIRST_S = 0.25
_NUDGE_MAX_S = 1.0
_NUDGE_EAGER_TRIES = 20
_NUDGE_PATIENT_S = 10.0


@dataclass(slots=True)
class Nudge:
    """How often one pod was nudged towards one revision."""

    revision: str
    tries: int
    due_s: float
    """On the monotonic clock."""


@dataclass(slots=True)
class ActMemory:
    """What is worth remembering between reconciles; losing it costs a few requests."""

    accepted: dict[str, str] = field(default_factory=dict[str, str])
    """By kind: hash of the server's form that a dry run found to be what we wish."""
    nudges: dict[str, Nudge] = field(default_factory=dict[str, Nudge])
    """By pod uid."""


async def apply_children(
    kube: Kube, manifests: Iterable[Manifest], children: Mapping[str, Manifest], memory: ActMemory
) -> list[str]:
    """Apply the children that differ, in order. Return the kinds that were applied.

    Args:
        kube: where to.
        manifests: what is to exist, one of each kind.
        children: what exists, by kind.
        memory: what was tried before.

    Raises:
        OperatorError: the API server refused one; those before it stand.
    """
    applied: list[str] = []
    for desired in manifests:
        kind = desired["kind"]
        if await _differs(kube, desired, children.get(kind), memory):
            await kube.apply(desired)
            applied.append(kind)
    return applied


async def _differs(kube: Kube, desired: Manifest, observed: Manifest | None, memory: ActMemory) -> bool:
    if observed is None or wish_changed(desired, observed):
        return True
    if covers(observed, desired):
        return False
    stands = content_hash(without_bookkeeping(observed))
    if memory.accepted.get(desired["kind"]) == stands:
        return False
    # Somebody changed it, or the server writes a value its own way: it knows which.
    result = await kube.apply(desired, dry_run=True)
    if content_hash(without_bookkeeping(result)) != stands:
        return True
    memory.accepted[desired["kind"]] = stands
    return False


async def nudge_pods(  # noqa: PLR0917 - one call, in the order of its sentence
    kube: Kube, owner: Identity, revision: str, seen: Observation, memory: ActMemory, now_s: float
) -> float | None:
    """Make kubelets refresh the mounted settings of pods that report another revision.

    A kubelet refreshes when its pod changes, so an annotation is changed, again and again: the first time may come
    before the kubelet has seen the new ConfigMap.

    Args:
        kube: where to.
        owner: whose pods.
        revision: the wanted one.
        seen: the pods and what they report.
        memory: what was tried before.
        now_s: the monotonic clock.

    Returns:
        Seconds until the next nudge is due, None when every pod that reports has the revision.
    """
    behind = [pod for pod in seen.pods if not pod.terminating and _is_behind(seen, pod, revision)]
    _forget_others(memory, behind)
    waits: list[float] = []
    for pod in behind:
        nudge = memory.nudges.get(pod.uid)
        if nudge is None or nudge.revision != revision:
            nudge = memory.nudges[pod.uid] = Nudge(revision, 0, now_s)
        if nudge.due_s <= now_s:
            nudge.tries += 1
            await kube.annotate_pod(owner.namespace, pod.name, {Annotations.NUDGE: f"{revision}.{nudge.tries}"})
            nudge.due_s = now_s + _nudge_wait_s(nudge.tries)
        waits.append(nudge.due_s - now_s)
    return min(waits, default=None)


def _nudge_wait_s(tries: int) -> float:
    return _NUDGE_PATIENT_S if tries > _NUDGE_EAGER_TRIES else min(_NUDGE_FIRST_S * 2.0 ** (tries - 1), _NUDGE_MAX_S)


def _is_behind(seen: Observation, pod: Pod, revision: str) -> bool:
    member = seen.members.get(pod.name)
    return member is not None and member.revision != revision


def _forget_others(memory: ActMemory, pods: Iterable[Pod]) -> None:
    uids = {pod.uid for pod in pods}
    for uid in memory.nudges.keys() - uids:
        del memory.nudges[uid]
