"""The pod template: one restricted container, and the hashes by which an outdated pod is known.

The container reads the static half from its environment and the live half from a mounted folder.
"""

import json
from typing import Any

from parallel_consumer_operator.api import Identity
from parallel_consumer_operator.desired.merge import merge_strategically
from parallel_consumer_operator.desired.naming import (
    CONTAINER,
    Annotations,
    Manifest,
    config_map_name,
    content_hash,
    labels_of,
    match_labels_of,
)
from parallel_consumer_runtime.settings import (
    LIVE_ENV,
    LIVE_FILE,
    LIVE_FOLDER,
    POD_NAME_ENV,
    PORT_ENV,
    STATIC_ENV,
    STATUS_PORT,
    ParallelConsumerSpec,
    render_static,
)

RESERVED_ENV = (STATIC_ENV, LIVE_ENV, PORT_ENV, POD_NAME_ENV)
"""Environment variables that the operator sets; a user's `env` may not."""

SHUTDOWN_MARGIN_S = 25
"""Beyond the drain: the last commit, the producer's flush and the interpreter's end."""

_STARTUP_TRIES = 60


def pod_template(owner: Identity, spec: ParallelConsumerSpec) -> Manifest:
    """Return the template with the user's part merged over it and both hashes in its annotations."""
    rendered: Manifest = {
        "metadata": {"labels": labels_of(owner.name), "annotations": {}},
        "spec": {
            "serviceAccountName": config_map_name(owner.name),
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": int(spec.processing.drain_timeout) + SHUTDOWN_MARGIN_S,
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [_container(owner.name, spec)],
            "topologySpreadConstraints": [
                {
                    "maxSkew": 1,
                    "topologyKey": "kubernetes.io/hostname",
                    "whenUnsatisfiable": "ScheduleAnyway",
                    "labelSelector": {"matchLabels": match_labels_of(owner.name)},
                }
            ],
            "volumes": [
                {"name": "live", "configMap": {"name": config_map_name(owner.name)}},
                {"name": "tmp", "emptyDir": {}},
            ],
        },
    }
    template: Manifest = merge_strategically(rendered, spec.template)
    consumer = next(item for item in template["spec"]["containers"] if item["name"] == CONTAINER)
    resources: Any = consumer.pop("resources", None)
    annotations = template["metadata"]["annotations"]
    annotations[Annotations.TEMPLATE] = content_hash(template)
    annotations[Annotations.RESOURCES] = content_hash(resources)
    if resources:
        consumer["resources"] = resources
    return template


def _container(name: str, spec: ParallelConsumerSpec) -> Manifest:
    static = render_static(name, spec).model_dump(mode="json", by_alias=True, exclude_none=True)
    container: Manifest = {
        "name": CONTAINER,
        "image": spec.image,
        "command": ["python", "-m", "parallel_consumer_runtime", "consume"],
        "env": [
            {"name": STATIC_ENV, "value": json.dumps(static, sort_keys=True)},
            {"name": LIVE_ENV, "value": f"{LIVE_FOLDER}/{LIVE_FILE}"},
            {"name": PORT_ENV, "value": str(STATUS_PORT)},
            {"name": POD_NAME_ENV, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            *spec.env,
        ],
        "ports": [{"name": "http", "containerPort": STATUS_PORT, "protocol": "TCP"}],
        # Starting may wait for brokers; after that, a process without progress for 30 s is ended.
        "startupProbe": _probe("/healthz", period_s=1, failures=_STARTUP_TRIES),
        "livenessProbe": _probe("/healthz", period_s=10, failures=3),
        # Short, because a roll waits for it.
        "readinessProbe": _probe("/readyz", period_s=1, failures=3),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "terminationMessagePolicy": "File",
        "volumeMounts": [
            # The whole folder: a single file mounted by subPath would never be refreshed.
            {"name": "live", "mountPath": LIVE_FOLDER, "readOnly": True},
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - the pod's own emptyDir
        ],
    }
    if spec.image_pull_policy is not None:
        container["imagePullPolicy"] = spec.image_pull_policy
    if spec.resources is not None:
        container["resources"] = spec.resources.model_dump(exclude_none=True)
    return container


def _probe(path: str, *, period_s: int, failures: int) -> Manifest:
    return {
        "httpGet": {"path": path, "port": "http"},
        "periodSeconds": period_s,
        "timeoutSeconds": 5 if period_s > 1 else 1,
        "failureThreshold": failures,
    }
