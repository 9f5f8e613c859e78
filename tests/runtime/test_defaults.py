"""What is left out is as good as what is written: every default of the settings keeps its own field's rules."""

from collections.abc import Iterator

import pytest
from pydantic import ValidationError, create_model

from parallel_consumer_runtime.settings import ParallelConsumerSpec, SettingsModel


def _models(base: type[SettingsModel]) -> Iterator[type[SettingsModel]]:
    for model in base.__subclasses__():
        yield model
        yield from _models(model)


def _name(model: type[SettingsModel]) -> str:
    return model.__name__


MODELS = sorted(set(_models(SettingsModel)), key=_name)


@pytest.mark.parametrize("model", MODELS, ids=_name)
def test_every_default_is_allowed(model: type[SettingsModel]) -> None:
    """Types, bounds and patterns, also where the field's own text would refuse the default."""
    checked = create_model(f"Checked{model.__name__}", __base__=model, __cls_kwargs__={"validate_default": True})
    problems: list[object] = []
    try:
        checked.model_validate({})
    except ValidationError as error:
        # What is required is no default, and what joins fields is not said of one.
        problems = [problem for problem in error.errors() if problem["type"] != "missing" and problem["loc"]]
    assert problems == []


def test_the_defaults_are_found() -> None:
    """The walk over the models reaches the spec."""
    assert ParallelConsumerSpec in MODELS
