"""What a user may not write into a SparkJob's templates and `env`."""

from parallel_consumer_operator.desired.spark.naming import DRIVER, EXECUTOR
from parallel_consumer_operator.desired.spark.pod import RESERVED_VOLUMES
from parallel_consumer_operator.desired.template_rules import TemplateRules, env_refusals, template_refusals
from parallel_consumer_runtime.settings.spark import SparkApplicationSpec

_ENV_PREFIX = "PARALLEL_CONSUMER_"


def spark_refusals(spec: SparkApplicationSpec, path: str = "spec") -> list[str]:
    """Return one sentence per refused field of what stands at a path, each beginning with its own; empty when all is well."""
    return [
        *env_refusals(spec.env, f"{path}.env", _rules(DRIVER)),
        *template_refusals(spec.driver.template, f"{path}.driver.template", _rules(DRIVER)),
        *template_refusals(spec.executor.template, f"{path}.executor.template", _rules(EXECUTOR)),
    ]


def _rules(role: str) -> TemplateRules:
    return TemplateRules(
        container=role,
        reserved_env=lambda name: name.startswith(_ENV_PREFIX),
        reserved_volumes=RESERVED_VOLUMES,
        pod_fields={
            "automountServiceAccountToken": "the driver needs its token, and executors have none",
            "restartPolicy": "restartPolicy of the SparkJob decides",
        },
        token="the driver has its own, and executors have none",  # noqa: S106 - a sentence
    )
