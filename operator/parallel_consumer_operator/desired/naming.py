"""The names, labels, annotations and owner reference that every child shares."""

import hashlib
import json
from typing import Any

from parallel_consumer_operator.api import API_VERSION_OF_KIND, Identity
from parallel_consumer_runtime.settings import API_GROUP

Manifest = dict[str, Any]

CONTAINER = "consumer"
"""The container that the operator owns; a template adds to it by this name."""
MANAGER = "parallel-consumer-operator"
"""Field manager of every write, and the value of `app.kubernetes.io/managed-by`."""


class Labels:
    """Label keys: what selects and what informs."""

    NAME = f"{API_GROUP}/name"
    """The name of the ParallelConsumer: selects its pods and children."""
    SPARK_JOB = f"{API_GROUP}/sparkjob"
    """The name of the SparkJob: selects its pods and children. Not `NAME`: one of each kind may have the same name."""
    APP = "app.kubernetes.io/name"
    INSTANCE = "app.kubernetes.io/instance"
    COMPONENT = "app.kubernetes.io/component"
    MANAGED_BY = "app.kubernetes.io/managed-by"


class Annotations:
    """Annotation keys: the operator's notes on its own children."""

    APPLIED = f"{API_GROUP}/applied-hash"
    """On each child: hash of what was applied. A difference means that the wish changed."""
    TEMPLATE = f"{API_GROUP}/template-hash"
    """On each pod: hash of the template without resources. A difference means that the pod is outdated."""
    RESOURCES = f"{API_GROUP}/resources-hash"
    """On each pod: hash of the consumer container's resources."""
    NUDGE = f"{API_GROUP}/live-revision"
    """On each pod: changed to make the kubelet refresh the mounted live settings now."""


def config_map_name(name: str) -> str:
    """Return the name of the ConfigMap that carries the live settings."""
    return f"{name}-runtime"


def service_name(name: str) -> str:
    """Return the headless Service's name; not the bare name, which is often a user's own Service."""
    return f"{name}-members"


def labels_of(name: str) -> dict[str, str]:
    """Return the labels of every child and pod."""
    return {
        Labels.APP: "parallel-consumer",
        Labels.INSTANCE: name,
        Labels.COMPONENT: CONTAINER,
        Labels.MANAGED_BY: MANAGER,
        Labels.NAME: name,
    }


def match_labels_of(name: str) -> dict[str, str]:
    """Return the labels that select the pods; a StatefulSet's selector is immutable, so this never changes."""
    return {Labels.APP: "parallel-consumer", Labels.NAME: name}


def selector_of(name: str) -> str:
    """Return the pods' selector as the string that list calls and the scale subresource take."""
    return ",".join(f"{key}={value}" for key, value in sorted(match_labels_of(name).items()))


def content_hash(content: Any) -> str:
    """Return twelve hexadecimal digits that change when plain data changes."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]


def child(  # noqa: PLR0917 - what every manifest begins with, in its order
    api_version: str,
    kind: str,
    name: str,
    owner: Identity,
    content: Manifest,
    labels: dict[str, str] | None = None,
) -> Manifest:
    """Return a whole child: metadata with owner reference, content, and the hash of both.

    Without labels of its own it gets those of a ParallelConsumer's children.
    """
    manifest: Manifest = {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": owner.namespace,
            "labels": labels_of(owner.name) if labels is None else labels,
            "annotations": {},
            "ownerReferences": [
                {
                    "apiVersion": API_VERSION_OF_KIND,
                    "kind": owner.kind,
                    "name": owner.name,
                    "uid": owner.uid,
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        **content,
    }
    manifest["metadata"]["annotations"][Annotations.APPLIED] = content_hash(manifest)
    return manifest
