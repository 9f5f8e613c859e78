"""`spark.properties`: what Spark is told, as text that Java reads back to the letter.

What differs between attempts and pods is not here but on the command line: the file is the same for all attempts.
"""

from parallel_consumer_operator.api import Identity
from parallel_consumer_operator.desired.spark.memory import heap_mib, overhead_mib
from parallel_consumer_operator.desired.spark.naming import (
    BLOCK_MANAGER_PORT,
    CONFIG_FOLDER,
    DRIVER_PORT,
    EXECUTOR,
    EXECUTOR_FILE,
    UI_PORT,
)
from parallel_consumer_runtime.settings.spark import SparkJobSpec

DEFAULTS: dict[str, str] = {
    "spark.kubernetes.executor.deleteOnTermination": "false",
    "spark.kubernetes.driver.service.deleteOnTermination": "false",
    "spark.kubernetes.driver.ownPersistentVolumeClaim": "false",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.ui.prometheus.enabled": "true",
    "spark.metrics.conf.*.sink.prometheusServlet.class": "org.apache.spark.metrics.sink.PrometheusServlet",
    "spark.metrics.conf.*.sink.prometheusServlet.path": "/metrics/prometheus",
}
"""Where Spark's own default does not fit; `sparkConf` may say otherwise. Executors that failed stay, so that their end can
be told: they go with the driver's pod. Services and claims are not Spark's to delete: its account has no right to."""

_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}


def spark_properties(owner: Identity, spec: SparkJobSpec) -> dict[str, str]:
    """Return every property of the file."""
    driver, executor, dynamic = spec.driver, spec.executor, spec.dynamic_allocation
    managed: dict[str, str | None] = {
        "spark.driver.port": str(DRIVER_PORT),
        "spark.driver.blockManager.port": str(BLOCK_MANAGER_PORT),
        "spark.ui.port": str(UI_PORT),
        "spark.driver.cores": str(driver.cores),
        "spark.driver.memory": f"{heap_mib(driver)}m",
        "spark.executor.instances": str(executor.instances),
        "spark.executor.cores": str(executor.cores),
        "spark.executor.memory": f"{heap_mib(executor)}m",
        "spark.executor.memoryOverhead": f"{overhead_mib(executor)}m",
        "spark.kubernetes.executor.request.cores": executor.core_request,
        "spark.kubernetes.executor.limit.cores": executor.core_limit,
        "spark.dynamicAllocation.enabled": str(dynamic.enabled).lower(),
        "spark.dynamicAllocation.initialExecutors": _number(dynamic.initial_executors),
        "spark.dynamicAllocation.minExecutors": _number(dynamic.min_executors),
        "spark.dynamicAllocation.maxExecutors": _number(dynamic.max_executors),
        "spark.submit.pyFiles": ",".join(spec.py_files) or None,
        "spark.kubernetes.namespace": owner.namespace,
        "spark.kubernetes.container.image": spec.image,
        "spark.kubernetes.container.image.pullPolicy": spec.image_pull_policy,
        "spark.kubernetes.executor.podTemplateFile": f"{CONFIG_FOLDER}/{EXECUTOR_FILE}",
        "spark.kubernetes.executor.podTemplateContainerName": EXECUTOR,
    }
    defaults = {"spark.app.name": owner.name, **DEFAULTS}
    if dynamic.enabled:
        # Those that were idle would be left in great numbers.
        defaults["spark.kubernetes.executor.deleteOnTermination"] = "true"
    of_the_user = {**defaults, **spec.spark_conf}
    return {**of_the_user, **{key: value for key, value in managed.items() if value is not None}}


def as_properties_file(properties: dict[str, str]) -> str:
    """Return the text of a Java properties file, one line each, sorted."""
    return "".join(f"{_escaped_key(key)}={_escaped(value)}\n" for key, value in sorted(properties.items()))


def _escaped(value: str) -> str:
    text = "".join(_ESCAPES.get(character, character) for character in value)
    return f"\\{text}" if text.startswith(" ") else text


def _escaped_key(key: str) -> str:
    return "".join(
        f"\\{character}" if character in " :=#!" else _ESCAPES.get(character, character) for character in key
    )


def _number(value: int | None) -> str | None:
    return None if value is None else str(value)
