"""The CEL rules of a Spark application, wherever it is written; the settings model holds the same."""

from parallel_consumer_operator.api.rule import rule
from parallel_consumer_operator.api.structural import Schema
from parallel_consumer_runtime.settings.spark_conf import (
    FORBIDDEN_SPARK_KEYS,
    MANAGED_SPARK_KEYS,
    REFUSED_SPARK_PREFIXES,
)


def application_rules(path: str) -> dict[str, list[Schema]]:
    """Return the rules of an application whose fields stand at a path."""
    return {
        f"{path}.sparkConf": _conf_rules(),
        f"{path}.dynamicAllocation": [
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
