"""Names, labels and places of a SparkJob's children; the attempt is in the names of everything that an attempt makes."""

import hashlib

from parallel_consumer_operator.desired.naming import MANAGER, Labels
from parallel_consumer_runtime.settings import API_GROUP

DRIVER = "driver"
"""The driver's container, and the role of its pod."""
EXECUTOR = "executor"
"""The executors' container, and the role of their pods."""
ROLE = f"{API_GROUP}/role"
"""Label of a pod: driver or executor."""
ATTEMPT = f"{API_GROUP}/attempt"
"""Label of a Job and of its pods: which attempt they are of."""
FAILURES = f"{API_GROUP}/failures"
"""Annotation of a Job: attempts that had failed before it."""
ENDED = f"{API_GROUP}/ended"
"""Annotation of a Job that the operator stopped: the reason, one word."""
ENDED_AT = f"{API_GROUP}/ended-at"
"""Annotation beside `ENDED`: when, RFC 3339."""
ENDED_MESSAGE = f"{API_GROUP}/ended-message"
"""Annotation beside `ENDED`: the cause in words."""
ENDED_LOG = f"{API_GROUP}/ended-log"
"""Annotation beside `ENDED`: the last lines of the driver's log; the pod goes, and its log with it."""

DRIVER_PORT = 7078
BLOCK_MANAGER_PORT = 7079
UI_PORT = 4040

CONFIG_FOLDER = "/etc/parallel-consumer"
PROPERTIES_FILE = "spark.properties"
EXECUTOR_FILE = "executor.yaml"
WINDOW_FILE = "window.json"
WORK_FOLDER = "/work"
"""Working folder of driver and executors, empty at first. Not the image's own: an empty volume there would hide what the
image brings."""

ATTEMPT_ENV = "PARALLEL_CONSUMER_ATTEMPT"
WINDOW_ENV = "PARALLEL_CONSUMER_WINDOW"
POD_IP_ENV = "PARALLEL_CONSUMER_POD_IP"
DRIVER_NAME_ENV = "PARALLEL_CONSUMER_DRIVER_POD_NAME"

_PREFIX_LENGTH_MAX = 47
"""What Spark leaves of 63 characters for `-exec-` and a number."""
_DIGEST_LENGTH = 8


def spark_labels(name: str, role: str | None = None) -> dict[str, str]:
    """Return the labels of every child, and with a role those of a pod."""
    labels = {
        Labels.APP: "parallel-consumer-spark",
        Labels.INSTANCE: name,
        Labels.MANAGED_BY: MANAGER,
        Labels.SPARK_JOB: name,
    }
    return labels if role is None else {**labels, Labels.COMPONENT: role, ROLE: role}


def spark_selector(name: str) -> str:
    """Return the selector of a SparkJob's pods and Jobs as list calls take it."""
    return f"{Labels.SPARK_JOB}={name}"


def spark_config_map_name(name: str) -> str:
    """Return the name of the ConfigMap with the properties and the executors' template."""
    return f"{name}-spark"


def driver_service_name(name: str) -> str:
    """Return the headless Service's name."""
    return f"{name}-driver"


def job_name(name: str, attempt: int) -> str:
    """Return the name of an attempt's Job."""
    return f"{name}-{attempt}"


def executor_prefix(name: str, attempt: int) -> str:
    """Return what an attempt's executors' names begin with, 47 characters at most: an attempt never meets another's pods."""
    whole = job_name(name, attempt)
    if len(whole) <= _PREFIX_LENGTH_MAX:
        return whole
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST_LENGTH]
    ending = f"-{digest}-{attempt}"
    return name[: _PREFIX_LENGTH_MAX - len(ending)].rstrip("-") + ending
