"""Durations, byte sizes and resource quantities as Kubernetes writes them: `200ms`, `1m30s`, `64Mi`, `500m`.

In Python a duration is a float of seconds and a size an int of bytes; in YAML and JSON both are strings.
"""

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any

from pydantic import (
    BeforeValidator,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainSerializer,
    ValidationInfo,
    WithJsonSchema,
)
from pydantic_core import CoreSchema, core_schema

DURATION_PATTERN = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"
SIZE_PATTERN = r"^[1-9][0-9]*(Ki|Mi|Gi)?$"
_TEXT_LENGTH_MAX = 32
RESOURCE_PATTERN = r"^([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$"
_DURATION_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)")
_NANOSECONDS = {"ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_BYTES = {"": 1, "Ki": 1024, "Mi": 1024**2, "Gi": 1024**3}


def parse_duration(value: object) -> float:
    """Return seconds for `5s`, `200ms` or `1m30s`; numbers are refused because they carry no unit.

    Raises:
        ValueError: with the form that is expected.
    """
    if not isinstance(value, str) or len(value) > _TEXT_LENGTH_MAX or not re.fullmatch(DURATION_PATTERN, value):
        msg = "write a duration with its unit, such as 200ms, 5s, 1m30s"
        raise ValueError(msg)
    # Whole nanoseconds, as the API server counts: at a bound, both must come to the same.
    parts = _DURATION_PART.findall(value)
    return sum(int(Decimal(number) * _NANOSECONDS[unit]) for number, unit in parts) / 10**9


def format_duration(seconds: float) -> str:
    """Return the shortest exact form in one unit: `100ms`, `5s`, `10m`."""
    milliseconds = round(seconds * 1000)
    for unit, size in (("h", 3_600_000), ("m", 60_000), ("s", 1000)):
        if milliseconds and milliseconds % size == 0:
            return f"{milliseconds // size}{unit}"
    return f"{milliseconds}ms"


def parse_size(value: object) -> int:
    """Return bytes for `64Mi`, `512Ki`, `1Gi` or `1000`, which is text: a field has one type.

    Raises:
        ValueError: with the form that is expected.
    """
    if not isinstance(value, str) or len(value) > _TEXT_LENGTH_MAX or not re.fullmatch(SIZE_PATTERN, value):
        msg = "write a size in bytes, more than 0, with an optional unit, such as 512Ki, 64Mi, 1Gi"
        raise ValueError(msg)
    number = value.rstrip("KMGi")
    return int(number) * _BYTES[value.removeprefix(number)]


def format_size(size_bytes: int) -> str:
    """Return the size in the largest unit that divides it."""
    for unit in ("Gi", "Mi", "Ki"):
        if size_bytes and size_bytes % _BYTES[unit] == 0:
            return f"{size_bytes // _BYTES[unit]}{unit}"
    return str(size_bytes)


def check_resource(value: object) -> object:
    """Return the value when it is a resource quantity, a string or an integer, as it was written.

    Raises:
        ValueError: with the form that is expected.
    """
    if isinstance(value, bool) or not isinstance(value, (int, str)) or not re.match(RESOURCE_PATTERN, str(value)):
        msg = 'write a quantity, such as 2, 500m, 256Mi, or "0.5" in quotes'
        raise ValueError(msg)
    return value


def _duration(value: object, info: ValidationInfo) -> float:
    """Read what was written, which is JSON; a number comes from our own code, in seconds."""
    return value if isinstance(value, float) and info.mode == "python" else parse_duration(value)


def _size(value: object, info: ValidationInfo) -> int:
    """Read what was written; a number comes from our own code, in bytes."""
    if isinstance(value, int) and not isinstance(value, bool) and value > 0 and info.mode == "python":
        return value
    return parse_size(value)


Duration = Annotated[
    float,
    BeforeValidator(_duration),
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema({"type": "string", "pattern": DURATION_PATTERN, "maxLength": _TEXT_LENGTH_MAX}),
]
"""Seconds as a float; `5s` in YAML."""


BETWEEN = "x-between"
"""In the JSON schema of a bounded field: least, most, and the sentence that refuses anything else."""


@dataclass(frozen=True, slots=True)
class Between:
    """Annotates a Duration that must lie between two others.

    The schema of the API server is generated from it, sentence included, so that both refuse the same.

    Args:
        least: as a user would write it.
        most: the same.
        why: ends the sentence, when the bounds need a reason.
    """

    least: str
    most: str
    why: str = ""

    @property
    def sentence(self) -> str:
        """What is said of a value out of bounds."""
        return f"must lie between {self.least} and {self.most}{self.why}"

    def check(self, seconds: float) -> float:
        """Return the value.

        Raises:
            ValueError: it is out of bounds.
        """
        if not parse_duration(self.least) <= seconds <= parse_duration(self.most):
            raise ValueError(self.sentence)
        return seconds

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Check after the text was read; called by pydantic."""
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Tell the bounds; called by pydantic."""
        return {**handler(schema), BETWEEN: [self.least, self.most, self.sentence]}


Size = Annotated[
    int,
    BeforeValidator(_size),
    PlainSerializer(format_size, return_type=str),
    WithJsonSchema({"type": "string", "pattern": SIZE_PATTERN, "maxLength": _TEXT_LENGTH_MAX}),
]
"""Bytes as an int; `64Mi` in YAML."""

ResourceQuantity = Annotated[
    str | int,
    BeforeValidator(check_resource),
    WithJsonSchema({"x-kubernetes-int-or-string": True, "pattern": RESOURCE_PATTERN, "maxLength": 64, "minimum": 0}),
]
"""An amount of a resource, kept as it was written: the API server has its own normal form."""
