"""The ConfigMap that the driver mounts: its properties and the executors' pod template."""

import json

from parallel_consumer_operator.api import Identity
from parallel_consumer_operator.desired.naming import Manifest, child
from parallel_consumer_operator.desired.spark.executor import executor_template
from parallel_consumer_operator.desired.spark.naming import (
    EXECUTOR_FILE,
    PROPERTIES_FILE,
    spark_config_map_name,
    spark_labels,
)
from parallel_consumer_operator.desired.spark.properties import as_properties_file, spark_properties
from parallel_consumer_runtime.settings.spark import SparkJobSpec


def config_map(owner: Identity, spec: SparkJobSpec) -> Manifest:
    """Return `<name>-spark`; the template is JSON, which is YAML too."""
    data = {
        PROPERTIES_FILE: as_properties_file(spark_properties(owner, spec)),
        EXECUTOR_FILE: json.dumps(executor_template(owner.name, spec), sort_keys=True, indent=1),
    }
    name = spark_config_map_name(owner.name)
    return child("v1", "ConfigMap", name, owner, {"data": data}, spark_labels(owner.name))
