"""Turns pydantic's JSON schema into a Kubernetes structural schema; refuses what that cannot express."""

from typing import Any, cast

from pydantic import BaseModel

from parallel_consumer_runtime.settings import BETWEEN

Schema = dict[str, Any]

_COPIED = (
    "type",
    "description",
    "enum",
    "pattern",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "maxProperties",
    "x-kubernetes-int-or-string",
)
_HANDLED = {
    *_COPIED,
    BETWEEN,
    "title",
    "default",
    "properties",
    "required",
    "items",
    "additionalProperties",
    "anyOf",
    "$ref",
}


class NotStructuralError(ValueError):
    """A model uses a schema keyword that a CRD cannot carry; change the model."""


def structural_schema(model: type[BaseModel]) -> Schema:
    """Return the schema of a model with references inlined, in the fields' order.

    Raises:
        NotStructuralError: naming the path and the keyword.
    """
    # Serialisation mode writes defaults as users would: "100ms", not 0.1.
    schema = model.model_json_schema(by_alias=True, mode="serialization")
    return _convert(schema, cast("dict[str, Schema]", schema.get("$defs", {})), "")


def _convert(schema: Schema, definitions: dict[str, Schema], path: str) -> Schema:
    if "$ref" in schema:
        target = definitions[schema["$ref"].removeprefix("#/$defs/")]
        schema = {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
    if "anyOf" in schema:
        return _convert_optional(schema, definitions, path)
    if unknown := schema.keys() - _HANDLED - {"$defs"}:
        raise NotStructuralError(f"{path or 'root'}: a CRD cannot carry {sorted(unknown)}")
    result: Schema = {key: schema[key] for key in _COPIED if key in schema}
    if "description" in result:
        result["description"] = " ".join(result["description"].split())
    if schema.get("default") is not None:
        result["default"] = _without_nulls(schema["default"])
    if BETWEEN in schema:
        result["x-kubernetes-validations"] = [_within(*schema[BETWEEN])]
    result |= _children(schema, definitions, path)
    if "required" in schema:
        result["required"] = list(schema["required"])
    return result


def _within(least: str, most: str, sentence: str) -> Schema:
    rule = f"duration(self) >= duration('{least}') && duration(self) <= duration('{most}')"
    return {"rule": rule, "message": sentence}


def _children(schema: Schema, definitions: dict[str, Schema], path: str) -> Schema:
    if "properties" in schema:
        properties = cast("dict[str, Schema]", schema["properties"]).items()
        return {"properties": {name: _convert(child, definitions, f"{path}.{name}") for name, child in properties}}
    if "items" in schema:
        return {"items": _convert(schema["items"], definitions, f"{path}[]")}
    extra = schema.get("additionalProperties")
    if isinstance(extra, dict):
        return {"additionalProperties": _convert(cast("Schema", extra), definitions, f"{path}.*")}
    return {"x-kubernetes-preserve-unknown-fields": True} if extra is True else {}


def _convert_optional(schema: Schema, definitions: dict[str, Schema], path: str) -> Schema:
    choices = [choice for choice in schema["anyOf"] if choice != {"type": "null"}]
    if len(choices) != 1:
        raise NotStructuralError(f"{path}: a CRD cannot carry a choice of types")
    siblings = {key: value for key, value in schema.items() if key != "anyOf"}
    return {**_convert({**choices[0], **siblings}, definitions, path), "nullable": True}


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in cast("Schema", value).items() if item is not None}
    return value
