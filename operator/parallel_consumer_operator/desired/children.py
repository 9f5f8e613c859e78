"""All children of one ParallelConsumer, in the order they are applied."""

from dataclasses import dataclass

from parallel_consumer_operator.api import Identity
from parallel_consumer_operator.desired.configmap import config_map
from parallel_consumer_operator.desired.disruptionbudget import disruption_budget
from parallel_consumer_operator.desired.naming import Annotations, Manifest
from parallel_consumer_operator.desired.service import service
from parallel_consumer_operator.desired.serviceaccount import service_account
from parallel_consumer_operator.desired.statefulset import stateful_set
from parallel_consumer_runtime.settings import LiveSettings, ParallelConsumerSpec, render_live


@dataclass(frozen=True, slots=True)
class Children:
    """What is to exist, and the hashes that pods are judged by."""

    manifests: tuple[Manifest, ...]
    """ConfigMap first, so that a pod never starts without its live settings; StatefulSet last."""
    live: LiveSettings
    """What the ConfigMap carries."""
    template_hash: str
    resources_hash: str


def render_children(owner: Identity, spec: ParallelConsumerSpec, *, wanted: int, existing: int) -> Children:
    """Render every child.

    Args:
        owner: whom they belong to.
        spec: the validated spec; its template must have passed `refusals`.
        wanted: members the group is to have; the live settings say so to the pods.
        existing: pods the StatefulSet is to keep now, `wanted` or more.
    """
    live = render_live(spec, wanted)
    pods = stateful_set(owner, spec, existing)
    annotations = pods["spec"]["template"]["metadata"]["annotations"]
    return Children(
        manifests=(config_map(owner, live), service_account(owner), service(owner), disruption_budget(owner), pods),
        live=live,
        template_hash=annotations[Annotations.TEMPLATE],
        resources_hash=annotations[Annotations.RESOURCES],
    )
