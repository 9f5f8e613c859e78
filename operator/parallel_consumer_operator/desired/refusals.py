"""What a user may not write into a ParallelConsumer's `spec.template` and `spec.env`."""

from parallel_consumer_operator.desired.naming import CONTAINER
from parallel_consumer_operator.desired.pod import RESERVED_ENV
from parallel_consumer_operator.desired.template_rules import TemplateRules, env_refusals, template_refusals
from parallel_consumer_runtime.settings import ParallelConsumerSpec

_NO_TOKEN = "consumer pods carry no token"  # noqa: S105 - a sentence
_RULES = TemplateRules(
    container=CONTAINER,
    reserved_env=RESERVED_ENV.__contains__,
    reserved_volumes=("live", "tmp"),
    pod_fields={
        "automountServiceAccountToken": _NO_TOKEN,
        "restartPolicy": "a StatefulSet's pods always restart",
    },
    token=_NO_TOKEN,
)


def refusals(spec: ParallelConsumerSpec) -> list[str]:
    """Return one sentence per refused field, each beginning with its path; empty when all is well."""
    return [*template_refusals(spec.template, "spec.template", _RULES), *env_refusals(spec.env, "spec.env", _RULES)]
