"""Cases for every bounded field of the spec, found in the models themselves: at each bound, and just beyond it."""

from collections.abc import Iterator
from types import UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

from annotated_types import Ge, Le
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from parallel_consumer_runtime.settings import Between, Duration, ParallelConsumerSpec, parse_duration
from tests.support.corpus import Case

_PROCESSING = "spec.processing"
_LARGE_BATCH = {f"{_PROCESSING}.batch": {"size": 10_000}, f"{_PROCESSING}.concurrency": {"fixed": 10_000}}
_NEEDS: dict[str, dict[str, Any]] = {
    f"{_PROCESSING}.concurrency.fixed": {f"{_PROCESSING}.concurrency": {}},
    f"{_PROCESSING}.concurrency.min": {f"{_PROCESSING}.concurrency": {"max": 10_000}},
    f"{_PROCESSING}.concurrency.max": {f"{_PROCESSING}.concurrency": {"min": 1}},
    f"{_PROCESSING}.batch": _LARGE_BATCH,
    f"{_PROCESSING}.retry": {f"{_PROCESSING}.deadLetter": {"topic": "dead"}},
    f"{_PROCESSING}.retry.initialBackoff": {f"{_PROCESSING}.retry.maxBackoff": "168h"},
    f"{_PROCESSING}.retry.maxBackoff": {f"{_PROCESSING}.retry.initialBackoff": "0s"},
    f"{_PROCESSING}.retryTopic": {f"{_PROCESSING}.retryTopic.topic": "again"},
    f"{_PROCESSING}.retryTopic.initialBackoff": {f"{_PROCESSING}.retryTopic.maxBackoff": "168h"},
    f"{_PROCESSING}.retryTopic.maxBackoff": {f"{_PROCESSING}.retryTopic.initialBackoff": "0s"},
    f"{_PROCESSING}.deadLetter": {f"{_PROCESSING}.deadLetter.topic": "dead"},
    f"{_PROCESSING}.deadLetter.stop.window": {f"{_PROCESSING}.deadLetter.stop.maxConsecutive": 10},
}
"""By field, or by the object it stands in: what else a manifest must say for its bounds alone to decide."""


class Bounds(NamedTuple):
    """One bounded field, with values as a manifest writes them."""

    path: str
    allowed: tuple[object, ...]
    refused: tuple[object, ...]
    says: str | None
    """The sentence of a refusal, where it is ours."""


def bounded_fields(spec: type[BaseModel] = ParallelConsumerSpec) -> list[Bounds]:
    """Return every field of a spec whose values have bounds, by the path in a manifest."""
    return list(_walk(spec, "spec"))


def durations(spec: type[BaseModel] = ParallelConsumerSpec) -> set[str]:
    """Return the path of every duration in a spec, bounded or not."""
    wanted = next(item for item in get_args(Duration) if not isinstance(item, type))
    return {path for path, types in _fields(spec, "spec") if wanted in types}


def cases() -> tuple[list[Case], list[Case]]:
    """Return what must be accepted, and what must be refused at the field's path."""
    valid: list[Case] = []
    invalid: list[Case] = []
    for field in bounded_fields():
        needs: dict[str, Any] = {}
        for place, changes in _NEEDS.items():
            if field.path == place or field.path.startswith(f"{place}."):
                needs |= changes
        valid += [Case(f"{field.path} is {value}", needs | {field.path: value}) for value in field.allowed]
        invalid += [
            Case(f"{field.path} is {value}", needs | {field.path: value}, field.path, field.says)
            for value in field.refused
        ]
    return valid, invalid


def _walk(model: type[BaseModel], path: str) -> Iterator[Bounds]:
    for place, parts in _fields(model, path):
        between = [part for part in parts if isinstance(part, Between)]
        if between:
            yield _of_duration(place, between[0])
        least = [part.ge for part in parts if isinstance(part, Ge)]
        most = [part.le for part in parts if isinstance(part, Le)]
        if least or most:
            yield _of_number(place, least, most, step=0.001 if float in parts else 1)


def _fields(model: type[BaseModel], path: str) -> Iterator[tuple[str, list[Any]]]:
    """Yield each field's path and everything its annotation is made of; those of nested models too."""
    for name, field in model.model_fields.items():
        place = f"{path}.{field.alias or name}"
        parts = [*_parts(field.annotation), *field.metadata]
        yield place, parts
        for part in parts:
            if isinstance(part, type) and issubclass(part, BaseModel):
                yield from _fields(part, place)


def _parts(annotation: Any) -> Iterator[Any]:
    origin = get_origin(annotation)
    if origin is Annotated:
        inner, *metadata = get_args(annotation)
        yield from _parts(inner)
        for item in metadata:
            yield from item.metadata if isinstance(item, FieldInfo) else [item]
    elif origin in {Union, UnionType}:
        for choice in get_args(annotation):
            yield from _parts(choice)
    else:
        yield annotation  # of a list or a map, only what it is: its items have no path of their own here


def _of_duration(path: str, bounds: Between) -> Bounds:
    least_ns, most_ns = (round(parse_duration(text) * 10**9) for text in (bounds.least, bounds.most))
    beyond = [most_ns + 1] if least_ns == 0 else [least_ns - 1, most_ns + 1]
    return Bounds(path, (bounds.least, bounds.most), tuple(map(_milliseconds, beyond)), bounds.sentence)


def _milliseconds(nanoseconds: int) -> str:
    return f"{nanoseconds // 10**6}.{nanoseconds % 10**6:06}ms"


def _of_number(path: str, least: list[Any], most: list[Any], step: float) -> Bounds:
    beyond = [*(round(value - step, 3) for value in least), *(round(value + step, 3) for value in most)]
    return Bounds(path, (*least, *most), tuple(beyond), None)
