"""The executors' pod template, which the driver reads from a file and completes.

Mandatory: without it a namespace that enforces the restricted level refuses executors for ever, while the driver looks
healthy. Image, resources and names are Spark's to fill in.
"""

from parallel_consumer_operator.desired.naming import Manifest
from parallel_consumer_operator.desired.spark.naming import EXECUTOR
from parallel_consumer_operator.desired.spark.pod import restricted_pod
from parallel_consumer_runtime.settings.spark import SparkJobSpec


def executor_template(name: str, spec: SparkJobSpec) -> Manifest:
    """Return the pod that executors begin from."""
    template = restricted_pod(
        name,
        EXECUTOR,
        spec,
        spec.executor,
        {
            "container": {"env": [*spec.env]},
            "volumes": [],
            # Executors speak to the driver, never to the API server.
            "spec": {"automountServiceAccountToken": False},
        },
    )
    return {"apiVersion": "v1", "kind": "Pod", **template}
