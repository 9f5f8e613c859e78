"""Waiting in tests: poll a condition until a deadline, never sleep and hope."""

import time
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")


class ConditionTimeoutError(AssertionError):
    """A condition did not become true before its deadline."""


def wait_until(
    probe: Callable[[], Value | None], what: str, timeout_s: float, *, every_s: float = 0.05, state: object = None
) -> Value:
    """Return the probe's first true value.

    Args:
        probe: asked every `every_s` seconds; its errors are the caller's to catch.
        what: the condition in words, for the error.
        timeout_s: the longest wait, seconds.
        every_s: time between two probes, seconds.
        state: what to print beside the error; a callable is called then.

    Raises:
        ConditionTimeoutError: the deadline passed; names the condition, the last value and the state.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        value = probe()
        if value:
            return value
        if time.monotonic() >= deadline:
            shown = state() if callable(state) else state
            raise ConditionTimeoutError(f"not within {timeout_s:g} s: {what}; last seen: {value!r}; {shown or ''}")
        time.sleep(every_s)
