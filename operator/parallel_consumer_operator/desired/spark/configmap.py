"""The ConfigMap that the driver mounts: its properties, the executors' pod template, and the window that the run is about."""

import json

from parallel_consumer_operator.api import Identity
from parallel_consumer_operator.desired.naming import Manifest, child
from parallel_consumer_operator.desired.spark.executor import executor_template
from parallel_consumer_operator.desired.spark.naming import (
    EXECUTOR_FILE,
    PROPERTIES_FILE,
    WINDOW_FILE,
    spark_config_map_name,
    spark_labels,
)
from parallel_consumer_operator.desired.spark.properties import as_properties_file, spark_properties
from parallel_consumer_runtime.settings.spark import SparkJobSpec
from parallel_consumer_runtime.settings.window import WindowSpec

_WINDOW_VERSION = 1
"""Of the file's form; `parallel_consumer_spark` refuses another one."""


def config_map(owner: Identity, spec: SparkJobSpec) -> Manifest:
    """Return `<name>-spark`; the template is JSON, which is YAML too."""
    data = {
        PROPERTIES_FILE: as_properties_file(spark_properties(owner, spec)),
        EXECUTOR_FILE: json.dumps(executor_template(owner.name, spec), sort_keys=True, indent=1),
    }
    if spec.window is not None:
        data[WINDOW_FILE] = json.dumps(_window(owner, spec.window), sort_keys=True, indent=1)
    name = spark_config_map_name(owner.name)
    return child("v1", "ConfigMap", name, owner, {"data": data}, spark_labels(owner.name))


def _window(owner: Identity, window: WindowSpec) -> Manifest:
    """Return the file as applications read it. What brought the window about is none of their business."""
    told = window.model_dump(mode="json", by_alias=True, exclude={"retry", "cause", "manual"})
    return {"version": _WINDOW_VERSION, "namespace": owner.namespace, **told}
