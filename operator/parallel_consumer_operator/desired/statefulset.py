"""The StatefulSet: at most one pod per ordinal, which is what static membership needs.

Parallel, because members need not wait for each other; OnDelete, because the operator decides which pod restarts when.
"""

from parallel_consumer_operator.api import Identity
from parallel_consumer_operator.desired.naming import Manifest, child, match_labels_of, service_name
from parallel_consumer_operator.desired.pod import pod_template
from parallel_consumer_runtime.settings import ParallelConsumerSpec


def stateful_set(owner: Identity, spec: ParallelConsumerSpec, replicas: int) -> Manifest:
    """Return `<name>`, whose pods `<name>-<ordinal>` are the members' instance ids.

    Args:
        owner: whom it belongs to.
        spec: the validated spec.
        replicas: pods to exist now; while scaling in, more than the spec's.
    """
    content = {
        "serviceName": service_name(owner.name),
        "replicas": replicas,
        "podManagementPolicy": "Parallel",
        "updateStrategy": {"type": "OnDelete"},
        "selector": {"matchLabels": match_labels_of(owner.name)},
        "template": pod_template(owner, spec),
    }
    return child("apps/v1", "StatefulSet", owner.name, owner, {"spec": content})
