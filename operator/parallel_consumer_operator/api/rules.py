"""The CEL rules that join fields, by the path they stand at; the bounds of one field come with its schema.

A rule stands at the field it speaks of, so that a refusal names the path. The same rules are validators of the
settings model; a corpus holds the two together.
"""

from parallel_consumer_operator.api.structural import Schema
from parallel_consumer_runtime.settings import FORBIDDEN_KEYS, MANAGED_KEYS

_NAME_LENGTH_MAX = 52
"""A StatefulSet's name and an eleven-character revision suffix make a label of at most 63."""


def rule(expression: str, message: str, field: str | None = None) -> Schema:
    """Return a rule as the schema carries it; a field is named by its path from where the rule stands."""
    written: Schema = {"rule": expression, "message": message}
    return written if field is None else {**written, "fieldPath": field}


def object_name_rule() -> Schema:
    """Return the rule on an object's own name; it stands at the root."""
    return rule(
        f"self.metadata.name.size() <= {_NAME_LENGTH_MAX} && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
        f"metadata.name becomes the name of a Service and of pods: at most {_NAME_LENGTH_MAX} lower-case letters, "
        "digits and dashes, beginning with a letter",
    )


def _refused_keys() -> list[Schema]:
    managed = [rule(f"!('{key}' in self)", f"'{key}' is managed: {why}") for key, why in MANAGED_KEYS.items()]
    return managed + [rule(f"!('{key}' in self)", f"'{key}' is refused: {why}") for key, why in FORBIDDEN_KEYS.items()]


_BACKOFFS_IN_ORDER = rule(
    "duration(self.initialBackoff) <= duration(self.maxBackoff)",
    "initialBackoff must not be longer than maxBackoff",
    ".initialBackoff",
)

RULES: dict[str, list[Schema]] = {
    "": [object_name_rule()],
    "spec.kafka": [
        rule("has(self.topics) != has(self.topicPattern)", "set either topics or topicPattern, and only one of them"),
        rule(
            "!has(self.groupProtocol) || self.groupProtocol != 'Consumer' || !has(self.assignor) || self.assignor != 'RoundRobin'",
            "assignor RoundRobin is of the classic protocol: with groupProtocol Consumer choose another one",
            ".assignor",
        ),
    ],
    "spec.kafka.groupId": [
        rule("self == oldSelf", "is immutable: another group is another position in every topic; make a new object"),
    ],
    "spec.kafka.config": _refused_keys(),
    "spec.kafka.consumerConfig": _refused_keys(),
    "spec.kafka.producerConfig": _refused_keys(),
    "spec.processing": [
        rule(
            "!has(self.retry) || !has(self.retry.maxAttempts) || self.retry.maxAttempts == 0 || has(self.deadLetter)",
            "retry.maxAttempts needs deadLetter.topic: a record that used up its attempts must go somewhere",
            ".deadLetter",
        ),
        rule(
            "self.commitMode != 'Transactional' || duration(self.commitInterval) <= duration('10s')",
            "commitInterval must be at most 10s with commitMode Transactional: the broker aborts what stays open",
            ".commitInterval",
        ),
        rule(
            "!has(self.subPartitions) || self.ordering == 'Key'", "subPartitions needs ordering Key", ".subPartitions"
        ),
        rule(
            "!has(self.batch) || self.batch.size <= (has(self.concurrency) ? "
            "(has(self.concurrency.fixed) ? self.concurrency.fixed : self.concurrency.max) : 16)",
            "batch.size must not be greater than the concurrency: each record of a batch counts",
            ".batch",
        ),
        rule(
            "!has(self.batch) || !self.batch.sameKey || self.ordering != 'Unordered'",
            "batch.sameKey needs ordering Key or Partition",
            ".batch",
        ),
        rule(
            "!has(self.batch) || !has(self.deferral)",
            "deferral is not for batches: a batch's outcomes are what the handler returns",
            ".deferral",
        ),
    ],
    "spec.processing.batch": [
        rule("self.minimum <= self.size", "minimum must not be greater than size", ".minimum"),
    ],
    "spec.processing.subPartitions": [
        rule("has(self.function) == (self.by == 'Function')", "function is for by: Function, and is needed there"),
    ],
    "spec.processing.deadLetter.stop": [
        rule("has(self.maxConsecutive) || has(self.maxRatio)", "set maxConsecutive, maxRatio, or both"),
        # The server compares a whole number with the whole part of the bound: 0 passes for 0.001.
        rule("!has(self.maxRatio) || self.maxRatio >= 0.001", "maxRatio must be at least 0.001", ".maxRatio"),
    ],
    "spec.processing.retryTopic": [_BACKOFFS_IN_ORDER],
    "spec.processing.concurrency": [
        rule("!has(self.fixed) || (!has(self.min) && !has(self.max))", "set either fixed, or min and max"),
        rule("has(self.fixed) || (has(self.min) && has(self.max))", "set either fixed, or both min and max"),
        rule("!has(self.min) || !has(self.max) || self.min <= self.max", "min must not be greater than max", ".min"),
    ],
    "spec.processing.retry": [_BACKOFFS_IN_ORDER],
}
"""Path of the object or field, dots between, to the rules that stand there."""

DEFAULTS_LEFT_OUT = ("spec.processing.concurrency",)
"""Fields whose default the API server must not write into the object: `fixed: 16`, once stored, would stay beside the
`min` and `max` that a later `kubectl apply` adds, and be refused with them."""


def add_rules(root: Schema, rules_by_path: dict[str, list[Schema]], defaults_left_out: tuple[str, ...] = ()) -> None:
    """Put every rule at its place in the schema, and take out the defaults that must not be stored.

    Raises:
        KeyError: naming a path that the schema does not have.
    """
    for path, rules in rules_by_path.items():
        _at(root, path).setdefault("x-kubernetes-validations", []).extend(rules)
    for path in defaults_left_out:
        parents, name = path.split(".")[:-1], path.rsplit(".", 1)[-1]
        _at(root, path).pop("default")
        _at(root, ".".join(parents)).get("default", {}).pop(name, None)


def _at(root: Schema, path: str) -> Schema:
    schema = root
    for part in path.split(".") if path else ():
        schema = schema["properties"][part]
    return schema
