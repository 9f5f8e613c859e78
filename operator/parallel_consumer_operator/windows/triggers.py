"""When the next window is due: after so many offsets, so much time, at a time of the clock, when all is done, or on demand."""

from typing import NamedTuple

from parallel_consumer_operator.windows.model import Ledger, Trigger
from parallel_consumer_operator.windows.schedule import next_tick

ASKED_EVERY_S = 10.0
"""How often the broker is asked how many results there are: pods know only of those that they produced in this life."""

MANUAL, OFFSETS, ON_DRAIN, INTERVAL, SCHEDULE = "Manual", "Offsets", "OnDrain", "Interval", "Schedule"


class Due(NamedTuple):
    """What the triggers say."""

    cause: str | None
    """The trigger that is due; None when none is."""
    next_s: float | None
    """Until one may be due by the clock."""
    maybe: bool = False
    """Enough offsets may be there that no pod knows of."""


def due(trigger: Trigger, ledger: Ledger, offsets: int, lag: int | None, now: float) -> Due:
    """Return which trigger is due, given how many offsets are ready."""
    if trigger.manual is not None and trigger.manual != ledger.manual:
        return Due(MANUAL, None)
    if trigger.offsets is not None and offsets >= trigger.offsets:
        return Due(OFFSETS, None)
    if trigger.on_drain and lag == 0 and offsets:
        return Due(ON_DRAIN, None)
    waits: list[float] = []
    if trigger.interval_s is not None:
        waits.append(ledger.since + trigger.interval_s - now)
        if waits[-1] <= 0:
            return Due(INTERVAL, None)
    if trigger.schedule is not None:
        waits.append(next_tick(trigger.schedule, ledger.since) - now)
        if waits[-1] <= 0:
            return Due(SCHEDULE, None)
    return Due(None, min(waits, default=None), maybe=trigger.offsets is not None or trigger.on_drain)
