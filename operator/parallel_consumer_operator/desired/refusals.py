"""What a user may not write into a ParallelConsumer, and the schema cannot tell."""

from parallel_consumer_operator.desired.naming import CONTAINER
from parallel_consumer_operator.desired.pod import RESERVED_ENV
from parallel_consumer_operator.desired.spark.refusals import spark_refusals
from parallel_consumer_operator.desired.template_rules import TemplateRules, env_refusals, template_refusals
from parallel_consumer_operator.windows.schedule import check_schedule
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
    found = [*template_refusals(spec.template, "spec.template", _RULES), *env_refusals(spec.env, "spec.env", _RULES)]
    for index, entry in enumerate(spec.spark_jobs):
        path = f"spec.sparkJobs[{index}]"
        found += [*spark_refusals(entry, path), *_schedule_refusals(entry.trigger.schedule, f"{path}.trigger.schedule")]
    return found


def _schedule_refusals(schedule: str | None, path: str) -> list[str]:
    if schedule is None:
        return []
    try:
        check_schedule(schedule)
    except ValueError as error:
        return [f"{path}: {error}"]
    return []
