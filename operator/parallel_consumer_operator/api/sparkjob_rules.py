"""The CEL rules of a SparkJob, by the path they stand at; the settings model holds the same."""

from parallel_consumer_operator.api.rules import object_name_rule, rule
from parallel_consumer_operator.api.structural import Schema
from parallel_consumer_runtime.settings.spark import SparkJobSpec
from parallel_consumer_runtime.settings.spark_conf import (
    FORBIDDEN_SPARK_KEYS,
    MANAGED_SPARK_KEYS,
    REFUSED_SPARK_PREFIXES,
)

MUTABLE = frozenset({"suspend"})
"""Fields that may change while the object lives."""


def _conf_rules() -> list[Schema]:
    managed = [rule(f"!('{key}' in self)", f"'{key}' is managed: {why}") for key, why in MANAGED_SPARK_KEYS.items()]
    secrets = [rule(f"!('{key}' in self)", f"'{key}' is refused: {why}") for key, why in FORBIDDEN_SPARK_KEYS.items()]
    prefixes = [
        rule(f"self.all(key, !key.startsWith('{prefix}'))", f"'{prefix}*' is refused: {why}")
        for prefix, why in REFUSED_SPARK_PREFIXES.items()
    ]
    name = rule(
        "self.all(key, key.startsWith('spark.'))",
        "every key begins with spark.; for one of Hadoop's write spark.hadoop. before it",
    )
    return [name, *managed, *secrets, *prefixes]


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
    "spec.sparkConf": _conf_rules(),
    "spec.dynamicAllocation": [
        rule(
            "!has(self.minExecutors) || !has(self.maxExecutors) || self.minExecutors <= self.maxExecutors",
            "minExecutors must not be greater than maxExecutors",
            ".minExecutors",
        ),
        rule(
            "!has(self.initialExecutors) || "
            "((!has(self.minExecutors) || self.minExecutors <= self.initialExecutors) && "
            "(!has(self.maxExecutors) || self.initialExecutors <= self.maxExecutors))",
            "initialExecutors must lie between minExecutors and maxExecutors",
            ".initialExecutors",
        ),
    ],
}
"""As in `rules`."""
