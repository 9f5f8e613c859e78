"""The base of every settings model: camelCase outside, strict about unknown fields, immutable."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints
from pydantic.alias_generators import to_camel

HandlerPath = Annotated[
    str,
    StringConstraints(
        pattern=r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*:[A-Za-z_][A-Za-z0-9_]*$", max_length=512
    ),
]
"""package.module:function, importable in the pod."""


class SettingsModel(BaseModel):
    """A frozen value object whose unknown fields are refused with their path."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="forbid",
        frozen=True,
        populate_by_name=True,
        use_attribute_docstrings=True,
    )
