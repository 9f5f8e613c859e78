"""The CEL rules that join fields, by the path they stand at; the bounds of one field come with its schema.

A rule stands at the field it speaks of, so that a refusal names the path. The same rules are validators of the
settings model; a corpus holds the two together.
"""

from parallel_consumer_operator.api.application_rules import application_rules
from parallel_consumer_operator.api.rule import object_name_rule, rule
from parallel_consumer_operator.api.structural import Schema
from parallel_consumer_runtime.settings import FORBIDDEN_KEYS, MANAGED_KEYS


def _refused_keys() -> list[Schema]:
    managed = [rule(f"!('{key}' in self)", f"'{key}' is managed: {why}") for key, why in MANAGED_KEYS.items()]
    return managed + [rule(f"!('{key}' in self)", f"'{key}' is refused: {why}") for key, why in FORBIDDEN_KEYS.items()]


_BEGIN_ANEW = "is immutable: what is known of its windows belongs to the entry's name; another name begins anew"
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
    "spec": [
        rule(
            "!has(self.sparkJobs) || has(self.results) || self.sparkJobs.all(entry, entry.source != 'Results')",
            "source Results needs spec.results",
            ".sparkJobs",
        ),
        rule(
            "!has(self.sparkJobs) || (has(self.processing) && has(self.processing.deadLetter)) || "
            "self.sparkJobs.all(entry, entry.source != 'DeadLetters')",
            "source DeadLetters needs spec.processing.deadLetter",
            ".sparkJobs",
        ),
    ],
    "spec.sparkJobs[].source": [rule("self == oldSelf", _BEGIN_ANEW)],
    "spec.sparkJobs[].from": [rule("self == oldSelf", _BEGIN_ANEW)],
    "spec.sparkJobs[].trigger": [
        rule(
            "has(self.offsets) || has(self.interval) || has(self.schedule) || self.onDrain || has(self.manual)",
            "set at least one of offsets, interval, schedule, onDrain and manual",
        ),
    ],
    **application_rules("spec.sparkJobs[]"),
}
"""Path of the object or field, dots between and `[]` behind a list's items, to the rules that stand there."""

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
        schema = schema["properties"][part.removesuffix("[]")]
        schema = schema["items"] if part.endswith("[]") else schema
    return schema
