"""Pure: conditions keep the time of their last change, and name what changed."""

from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum

from parallel_consumer_operator.api import Condition, ConditionStatus

_MESSAGE_LENGTH_MAX = 2048


def condition(kind: StrEnum, *, status: bool | None, reason: StrEnum, message: str, generation: int) -> Condition:
    """Return an answer whose time is not set yet; `settle` sets it. None as status is Unknown.

    Question and reason are words of the object's kind: each kind enumerates its own.
    """
    answer = ConditionStatus.UNKNOWN if status is None else ConditionStatus.TRUE if status else ConditionStatus.FALSE
    return Condition(
        type=kind,
        status=answer,
        reason=reason,
        message=message[:_MESSAGE_LENGTH_MAX],
        last_transition_time="",
        observed_generation=generation,
    )


def settle(before: Sequence[Condition], after: Sequence[Condition], now: datetime) -> list[Condition]:
    """Return `after` with times: an answer that did not change keeps its time."""
    known = {item.type: item for item in before}
    stamp = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    settled: list[Condition] = []
    for item in after:
        old = known.get(item.type)
        same = old is not None and old.status == item.status
        settled.append(
            item.model_copy(update={"last_transition_time": old.last_transition_time if old and same else stamp})
        )
    return settled


def transitions(before: Sequence[Condition], after: Sequence[Condition]) -> list[Condition]:
    """Return the answers whose status or reason changed, in their order."""
    known = {item.type: (item.status, item.reason) for item in before}
    return [item for item in after if known.get(item.type) != (item.status, item.reason)]
