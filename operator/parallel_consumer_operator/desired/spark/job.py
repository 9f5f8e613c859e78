"""The batch Job of one attempt: one pod, the driver in client mode. Created once, never applied again.

It has neither `ttlSecondsAfterFinished` nor `activeDeadlineSeconds`: both delete the driver and its log. The operator stops
an attempt by suspending the Job, when the log's tail is saved.
"""

from parallel_consumer_operator.api import Identity
from parallel_consumer_operator.desired.naming import Manifest, child
from parallel_consumer_operator.desired.spark.memory import pod_mib
from parallel_consumer_operator.desired.spark.naming import (
    ATTEMPT,
    ATTEMPT_ENV,
    BLOCK_MANAGER_PORT,
    CONFIG_FOLDER,
    DRIVER,
    DRIVER_NAME_ENV,
    DRIVER_PORT,
    FAILURES,
    POD_IP_ENV,
    PROPERTIES_FILE,
    UI_PORT,
    WINDOW_ENV,
    WINDOW_FILE,
    executor_prefix,
    job_name,
    spark_config_map_name,
    spark_labels,
)
from parallel_consumer_operator.desired.spark.pod import restricted_pod
from parallel_consumer_runtime.settings.spark import SparkJobSpec

SPARK_SUBMIT = "/opt/spark/bin/spark-submit"
_API_SERVER = "k8s://https://$(KUBERNETES_SERVICE_HOST):$(KUBERNETES_SERVICE_PORT)"
_STOP_GRACE_S = 30


def batch_job(owner: Identity, spec: SparkJobSpec, *, attempt: int, failures: int, account: str) -> Manifest:
    """Return the Job of an attempt.

    Args:
        owner: whom it belongs to.
        spec: the validated spec; its templates must have passed `spark_refusals`.
        attempt: 1 for the first.
        failures: attempts that failed before.
        account: the service account of the driver.
    """
    number = {ATTEMPT: str(attempt)}
    template = _driver_template(owner, spec, attempt, account)
    template["metadata"]["labels"] |= number
    content = {
        "backoffLimit": 0,
        "completions": 1,
        "parallelism": 1,
        "podReplacementPolicy": "Failed",
        "template": template,
    }
    labels = {**spark_labels(owner.name), **number}
    manifest = child("batch/v1", "Job", job_name(owner.name, attempt), owner, {"spec": content}, labels)
    manifest["metadata"]["annotations"][FAILURES] = str(failures)
    return manifest


def _driver_template(owner: Identity, spec: SparkJobSpec, attempt: int, account: str) -> Manifest:
    resources: Manifest = {
        "requests": {"cpu": spec.driver.core_request or str(spec.driver.cores), "memory": f"{pod_mib(spec.driver)}Mi"},
        "limits": {"memory": f"{pod_mib(spec.driver)}Mi"},
    }
    if spec.driver.core_limit is not None:
        resources["limits"]["cpu"] = spec.driver.core_limit
    container: Manifest = {
        "command": [SPARK_SUBMIT],
        "args": [*_submit_options(owner, spec, attempt), spec.main_application_file, *spec.arguments],
        "env": [
            {"name": ATTEMPT_ENV, "value": str(attempt)},
            {"name": POD_IP_ENV, "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            {"name": DRIVER_NAME_ENV, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            *([] if spec.window is None else [{"name": WINDOW_ENV, "value": f"{CONFIG_FOLDER}/{WINDOW_FILE}"}]),
            *spec.env,
        ],
        "ports": [
            {"name": "driver", "containerPort": DRIVER_PORT, "protocol": "TCP"},
            {"name": "block-manager", "containerPort": BLOCK_MANAGER_PORT, "protocol": "TCP"},
            {"name": "ui", "containerPort": UI_PORT, "protocol": "TCP"},
        ],
        "resources": resources,
        "volumeMounts": [{"name": "config", "mountPath": CONFIG_FOLDER, "readOnly": True}],
    }
    return restricted_pod(
        owner.name,
        DRIVER,
        spec,
        spec.driver,
        {
            "container": container,
            "volumes": [{"name": "config", "configMap": {"name": spark_config_map_name(owner.name)}}],
            "spec": {"serviceAccountName": account, "terminationGracePeriodSeconds": _STOP_GRACE_S},
        },
    )


def _submit_options(owner: Identity, spec: SparkJobSpec, attempt: int) -> list[str]:
    """Return what differs between pods and attempts; the kubelet replaces `$(…)` by the container's environment."""
    conf = {
        "spark.driver.host": f"$({POD_IP_ENV})",
        "spark.driver.bindAddress": f"$({POD_IP_ENV})",
        "spark.kubernetes.driver.pod.name": f"$({DRIVER_NAME_ENV})",
        "spark.kubernetes.executor.podNamePrefix": executor_prefix(owner.name, attempt),
        f"spark.kubernetes.executor.label.{ATTEMPT}": str(attempt),
        f"spark.executorEnv.{ATTEMPT_ENV}": str(attempt),
    }
    options = ["--master", f"local[{spec.driver.cores}]" if spec.local else _API_SERVER, "--deploy-mode", "client"]
    options += ["--properties-file", f"{CONFIG_FOLDER}/{PROPERTIES_FILE}"]
    return options + [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
