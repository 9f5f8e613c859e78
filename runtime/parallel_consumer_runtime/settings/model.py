"""The base of every settings model: camelCase outside, strict about unknown fields, immutable."""

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class SettingsModel(BaseModel):
    """A frozen value object whose unknown fields are refused with their path."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="forbid",
        frozen=True,
        populate_by_name=True,
        use_attribute_docstrings=True,
        validate_default=True,
    )
