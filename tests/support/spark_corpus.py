"""Valid and invalid SparkJobs; the settings model and the API server judge the same corpus."""

from typing import Any

from parallel_consumer_runtime.settings.spark_conf import (
    FORBIDDEN_SPARK_KEYS,
    MANAGED_SPARK_KEYS,
    REFUSED_SPARK_PREFIXES,
)
from tests.support.corpus import REMOVE, Case, changed
from tests.support.fake_spark import spark_job


class SparkCase(Case):
    """One SparkJob, as `Case` is one ParallelConsumer."""

    @property
    def manifest(self) -> dict[str, Any]:
        """The whole object."""
        return changed(spark_job(), self.changes)


_DYNAMIC = "spec.dynamicAllocation"
_CONF = "spec.sparkConf"

SPARK_VALID = [
    SparkCase("minimal", {}),
    SparkCase("remote application", {"spec.mainApplicationFile": "s3a://bucket/jobs/archive.py"}),
    SparkCase("arguments of any form", {"spec.arguments": ["--output", "/data", "$(PARALLEL_CONSUMER_ATTEMPT)", ""]}),
    SparkCase("modules", {"spec.pyFiles": ["local:///opt/app/lib.zip", "local:///opt/app/a.egg"]}),
    SparkCase(
        "properties", {_CONF: {"spark.sql.shuffle.partitions": "8", "spark.hadoop.fs.s3a.endpoint": "http://s3"}}
    ),
    SparkCase("memory in either case", {"spec.driver": {"memory": "512m"}, "spec.executor": {"memory": "2G"}}),
    SparkCase("parts of a CPU", {"spec.driver.coreRequest": "250m", "spec.executor.coreLimit": "1.5"}),
    SparkCase("no executors", {"spec.executor": {"instances": 0}}),
    SparkCase("executors by need", {_DYNAMIC: {"enabled": True, "minExecutors": 0, "maxExecutors": 4}}),
    SparkCase("executors by need, all said", {_DYNAMIC: {"minExecutors": 1, "initialExecutors": 2, "maxExecutors": 2}}),
    SparkCase(
        "retries", {"spec.restartPolicy": {"type": "OnFailure", "onFailureRetries": 0, "onFailureRetryInterval": "0s"}}
    ),
    SparkCase("timeouts", {"spec.timeouts": {"start": "5m", "run": "1h30m"}}),
    SparkCase("gone at once", {"spec.timeToLiveSecondsAfterFinished": 0}),
    SparkCase("suspended from the start", {"spec.suspend": True}),
    SparkCase("any other part of a pod", {"spec.driver.template": {"spec": {"nodeSelector": {"disk": "ssd"}}}}),
]

SPARK_INVALID = [
    SparkCase("no image", {"spec.image": REMOVE}, "spec.image"),
    SparkCase("no application", {"spec.mainApplicationFile": REMOVE}, "spec.mainApplicationFile"),
    SparkCase("a path without a scheme", {"spec.mainApplicationFile": "/opt/app.py"}, "spec.mainApplicationFile"),
    SparkCase("an option as application", {"spec.mainApplicationFile": "--conf"}, "spec.mainApplicationFile"),
    SparkCase("a jar", {"spec.mainApplicationFile": "local:///opt/app.jar"}, "spec.mainApplicationFile"),
    SparkCase("two modules in one", {"spec.pyFiles": ["local:///a.py,local:///b.py"]}, "spec.pyFiles[0]"),
    SparkCase("unknown field", {"spec.mainClass": "org.example.Main"}, "spec.mainClass"),
    SparkCase("memory as Kubernetes writes it", {"spec.driver.memory": "1Gi"}, "spec.driver.memory"),
    SparkCase("memory without a unit", {"spec.executor.memory": "1024"}, "spec.executor.memory"),
    SparkCase("memory of nothing", {"spec.executor.memoryOverhead": "0m"}, "spec.executor.memoryOverhead"),
    SparkCase("no core", {"spec.driver.cores": 0}, "spec.driver.cores"),
    SparkCase("half a core", {"spec.executor.cores": "500m"}, "spec.executor.cores"),
    SparkCase("instances of a driver", {"spec.driver.instances": 2}, "spec.driver.instances"),
    SparkCase("least above most", {_DYNAMIC: {"minExecutors": 3, "maxExecutors": 2}}, _DYNAMIC),
    SparkCase("first above most", {_DYNAMIC: {"initialExecutors": 3, "maxExecutors": 2}}, _DYNAMIC),
    SparkCase("first below least", {_DYNAMIC: {"initialExecutors": 1, "minExecutors": 2}}, _DYNAMIC),
    SparkCase("a restart that is none", {"spec.restartPolicy.type": "Always"}, "spec.restartPolicy.type"),
    SparkCase("a start in no time", {"spec.timeouts.start": "1s"}, "spec.timeouts.start"),
    SparkCase("a timeout without a unit", {"spec.timeouts.run": "60"}, "spec.timeouts.run"),
    SparkCase("a life in the past", {"spec.timeToLiveSecondsAfterFinished": -1}, "spec.timeToLiveSecondsAfterFinished"),
    SparkCase("a property of something else", {_CONF: {"fs.s3a.endpoint": "http://s3"}}, _CONF),
    *(SparkCase(f"managed {key}", {_CONF: {key: "1"}}, _CONF, why) for key, why in MANAGED_SPARK_KEYS.items()),
    *(SparkCase(f"refused {key}", {_CONF: {key: "1"}}, _CONF, why) for key, why in FORBIDDEN_SPARK_KEYS.items()),
    *(
        SparkCase(f"refused {key}*", {_CONF: {f"{key}x": "1"}}, _CONF, why)
        for key, why in REFUSED_SPARK_PREFIXES.items()
    ),
]
