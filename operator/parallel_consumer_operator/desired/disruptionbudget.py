"""The PodDisruptionBudget: node drains take one member at a time."""

from parallel_consumer_operator.api import Identity
from parallel_consumer_operator.desired.naming import Manifest, child, match_labels_of


def disruption_budget(owner: Identity) -> Manifest:
    """Return `<name>`; a pod that is not ready may always be evicted, or a broken one would hold up a node's drain."""
    spec = {
        "maxUnavailable": 1,
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
        "selector": {"matchLabels": match_labels_of(owner.name)},
    }
    return child("policy/v1", "PodDisruptionBudget", owner.name, owner, {"spec": spec})
