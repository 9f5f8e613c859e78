"""Durations are read to the nanosecond, as the API server reads them; what is out of bounds is refused in one sentence."""

from typing import Annotated

import pytest
from pydantic import BaseModel, ValidationError

from parallel_consumer_runtime.settings import Between, Duration, explain, parse_duration


class _Wait(BaseModel):
    """One bounded field."""

    wait: Annotated[Duration, Between("100ms", "30m", ", for a reason")] = 1.0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0s", 0.0),
        ("200ms", 0.2),
        ("1m30s", 90.0),
        ("0.5h", 1800.0),
        ("1799.9s100ms", 1800.0),
        ("9.999999ms", 0.009999999),
    ],
)
def test_a_duration_is_its_sum_in_seconds(text: str, seconds: float) -> None:
    """Parts add up without the errors of binary fractions."""
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "5", "5 s", "s", "-5s", "5d", "5s\n", "1s" * 17, 5, True, None])
def test_what_is_no_duration_is_refused_with_an_example(text: object) -> None:
    """Also what only the API server would refuse: a line's end, more than 32 characters."""
    with pytest.raises(ValueError, match="such as 200ms, 5s, 1m30s"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["100ms", "0.1s", "30m", "1799.9s100ms"])
def test_bounds_belong_to_what_is_allowed(text: str) -> None:
    """However they are written."""
    assert _Wait.model_validate({"wait": text}).wait == parse_duration(text)


@pytest.mark.parametrize("text", ["99.999999ms", "30m0.000001ms"])
def test_a_nanosecond_beyond_a_bound_is_refused(text: str) -> None:
    """The sentence names both bounds, and the reason that was given for them."""
    with pytest.raises(ValidationError) as refusal:
        _Wait.model_validate({"wait": text})
    assert explain(refusal.value) == ["wait: must lie between 100ms and 30m, for a reason"]
