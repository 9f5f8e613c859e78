"""What driver and executor pods share: the restricted security context, the folders that may be written, the user's part."""

from parallel_consumer_operator.desired.merge import merge_strategically
from parallel_consumer_operator.desired.naming import Manifest
from parallel_consumer_operator.desired.spark.naming import WORK_FOLDER, spark_labels
from parallel_consumer_runtime.settings.spark import SparkJobSpec, SparkPodSpec

SPARK_USER = 185
"""The user of Spark's official images."""

RESERVED_VOLUMES = frozenset({"config", "tmp", "work"})


def restricted_pod(name: str, role: str, spec: SparkJobSpec, of: SparkPodSpec, pod: Manifest) -> Manifest:
    """Return a pod template that the restricted level admits, with the user's part merged over it.

    Args:
        name: the SparkJob's.
        role: driver or executor, which is the container's name too.
        spec: the whole spec.
        of: the role's part of the spec.
        pod: what the role adds: `container`, and the pod's own fields.
    """
    container = {
        "name": role,
        "image": spec.image,
        "workingDir": WORK_FOLDER,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        **pod["container"],
    }
    if spec.image_pull_policy is not None:
        container["imagePullPolicy"] = spec.image_pull_policy
    container["volumeMounts"] = [
        {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - the pod's own emptyDir
        {"name": "work", "mountPath": WORK_FOLDER},
        *container.get("volumeMounts", []),
    ]
    rendered: Manifest = {
        "metadata": {"labels": spark_labels(name, role)},
        "spec": {
            "enableServiceLinks": False,
            "restartPolicy": "Never",
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": SPARK_USER,
                "fsGroup": SPARK_USER,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [container],
            "volumes": [{"name": "tmp", "emptyDir": {}}, {"name": "work", "emptyDir": {}}, *pod["volumes"]],
            **pod["spec"],
        },
    }
    template: Manifest = merge_strategically(rendered, of.template)
    return template
