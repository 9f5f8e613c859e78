"""One CEL rule as a schema carries it, and the one on every object's name."""

from parallel_consumer_operator.api.structural import Schema

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
