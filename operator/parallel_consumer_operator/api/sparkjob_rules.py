"""The CEL rules of a SparkJob, by the path they stand at; the settings model holds the same."""

from parallel_consumer_operator.api.application_rules import application_rules
from parallel_consumer_operator.api.rule import object_name_rule, rule
from parallel_consumer_operator.api.structural import Schema
from parallel_consumer_runtime.settings.spark import SparkJobSpec

MUTABLE = frozenset({"suspend"})
"""Fields that may change while the object lives."""


def _immutable() -> list[Schema]:
    """Return a rule per field: at the parent, because a rule at the field does not see it come or go."""
    fields = [field.alias or name for name, field in SparkJobSpec.model_fields.items()]
    return [
        rule(
            f"has(self.{name}) == has(oldSelf.{name}) && (!has(self.{name}) || self.{name} == oldSelf.{name})",
            "is immutable: a SparkJob is one run; make a new object",
            f".{name}",
        )
        for name in fields
        if name not in MUTABLE
    ]


SPARK_RULES: dict[str, list[Schema]] = {
    "": [object_name_rule()],
    "spec": _immutable(),
    **application_rules("spec"),
}
"""As in `rules`."""
