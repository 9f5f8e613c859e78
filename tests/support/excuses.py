"""What a fault excuses: repeats of calls that could not be committed any more, and calls of one who did not know yet.

G4 for faults that a life survives: of a record's two calls, either the first one was in flight at a fault of its life,
ended less than a commit's time before it, or ran while it lasted; or the second one ran in a life that did not know yet.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from tests.support.checkers import Anomaly, Violation
from tests.support.history import End, Ended, Event, Life, Outcome, Position, Revoked, Start

NANOSECONDS = 1_000_000_000


class Excuse(NamedTuple):
    """A fault's time, by the clock of the history."""

    what: str
    life: Life | None
    """Whom it befell; None for everybody."""
    from_ns: int
    until_ns: int
    """When it was over and everybody knew it."""


class _Repeat(NamedTuple):
    at: Position
    before: "_Call"
    again: "_Call"


class _Call(NamedTuple):
    life: Life
    start_ns: int
    end_ns: int | None


class OnlyExcusedRepeats:
    """Every repeat is excused by a fault; without excuses there are none.

    Args:
        excuses: the faults.
        commit_s: from a call's end to the acknowledgement of the commit that covers it, at most, seconds.
    """

    def __init__(self, excuses: Sequence[Excuse], *, commit_s: float) -> None:
        self._excuses = list(excuses)
        self._commit_ns = int(commit_s * NANOSECONDS)

    def check(self, events: Sequence[Event]) -> list[Violation]:
        """Return the repeats without an excuse."""
        return [
            Violation(Anomaly.DUPLICATE, f"{one.at}: {one.again} after {one.before}, no fault near")
            for one in self._repeats(events)
            if self._excuse(one) is None
        ]

    def counts(self, events: Sequence[Event]) -> Counter[str]:
        """Return how many repeats each fault cost."""
        found = (self._excuse(one) for one in self._repeats(events))
        return Counter("no fault" if excuse is None else excuse.what for excuse in found)

    def _excuse(self, repeat: _Repeat) -> Excuse | None:
        before, again = repeat.before, repeat.again
        for excuse in self._excuses:
            befell = excuse.life in {None, before.life} and before.start_ns <= excuse.until_ns
            if befell and (before.end_ns is None or before.end_ns >= excuse.from_ns - self._commit_ns):
                return excuse
            # A process may be stopped between reading the clock and writing the line: the line then comes when it goes on.
            if excuse.life == again.life and excuse.from_ns - self._commit_ns <= again.start_ns <= excuse.until_ns:
                return excuse
        return None

    @staticmethod
    def _repeats(events: Sequence[Event]) -> list[_Repeat]:
        """Return the records that were called again, each with its last call before; retries are none."""
        calls: dict[Position, _Call] = {}
        failed: set[tuple[Life, Position]] = set()
        repeats: list[_Repeat] = []
        for event in events:
            if type(event) is Start:
                before, again = calls.get(event.at), _Call(event.life, event.time_ns, None)
                if before is not None and not (before.life == event.life and (event.life, event.at) in failed):
                    repeats.append(_Repeat(event.at, before, again))
                calls[event.at] = again
            elif type(event) is End:
                if event.outcome is Outcome.FAILED:
                    failed.add((event.life, event.at))
                call = calls.get(event.at)
                if call is not None and call.life == event.life:
                    calls[event.at] = call._replace(end_ns=event.time_ns)
        return repeats


def unaware_calls(events: Sequence[Event], excuses: Sequence[Excuse]) -> int:
    """Return how many calls lives began in their excuses before they were told that their partitions are gone."""
    spans = [one for one in excuses if one.life is not None]
    count = 0
    for span in spans:
        for event in events:
            if type(event) is Start:
                count += event.life == span.life and span.from_ns <= event.time_ns <= span.until_ns
            elif type(event) is Revoked and event.life == span.life and event.time_ns >= span.from_ns:
                break
    return count


def without_calls(events: Sequence[Event], excuses: Sequence[Excuse]) -> list[Event]:
    """Return the history without the calls that ran in a life's excuse.

    For G2 and G3, which no member can keep while it stands still: what it had begun goes on beside its successor's
    calls when it moves again, and it may begin a few more before it learns that it was replaced.
    """
    spans = [one for one in excuses if one.life is not None]
    open_calls: dict[tuple[Life, Position], int] = {}
    dropped: set[int] = set()
    for index, event in enumerate(events):
        if type(event) is Start:
            open_calls[event.life, event.at] = index
            if _inside(event.life, event.time_ns, spans):
                dropped.add(index)
        elif type(event) is End:
            start = open_calls.pop((event.life, event.at), None)
            if start is not None and (start in dropped or _inside(event.life, event.time_ns, spans)):
                dropped |= {start, index}
        elif type(event) is Ended:
            for key in [key for key in open_calls if key[0] == event.life]:
                start = open_calls.pop(key)
                if _inside(event.life, event.time_ns, spans):
                    dropped.add(start)
    return [event for index, event in enumerate(events) if index not in dropped]


def _inside(life: Life, time_ns: int, spans: Sequence[Excuse]) -> bool:
    return any(span.life == life and span.from_ns <= time_ns <= span.until_ns for span in spans)
