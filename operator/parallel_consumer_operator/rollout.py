"""Pure: which pod may restart now. One at a time, the next when the last one is ready again."""

from collections.abc import Sequence

from parallel_consumer_operator.pods import Pod


def next_restart(pods: Sequence[Pod], *, existing: int, template_hash: str, resources_hash: str) -> Pod | None:
    """Return the outdated pod to delete now, None when there is none or it must wait.

    A pod that is missing, ending or, being new, not ready holds the roll: a bad template stops at the first pod. An
    outdated pod that is not ready goes first and needs no other to be ready but the new ones: it may be broken because
    it is outdated.

    Args:
        pods: the pods as they are.
        existing: how many ordinals the StatefulSet keeps.
        template_hash: of the wanted template.
        resources_hash: of the wanted resources.
    """
    present = [pod for pod in pods if pod.ordinal < existing]
    if len(present) < existing or any(pod.terminating for pod in present):
        return None
    outdated = [pod for pod in present if pod.outdated(template_hash, resources_hash)]
    if not outdated or not all(pod.ready for pod in present if pod not in outdated):
        return None
    # Not ready first; among equals from the highest ordinal down, as a StatefulSet would.
    return min(outdated, key=lambda pod: (pod.ready, -pod.ordinal))
