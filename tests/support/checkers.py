"""The guarantees as objects: each reads a history and names what broke, in Jepsen's words.

    lost           the group's commit passed a record that was not done: nobody will handle it (G1)
    unseen         produced, not done, and no commit passed it: not handled yet when the history ends (G1)
    phantom        handled, but never produced like this
    duplicate      handled again, more often than the fault before it excuses (G4)
    nonmonotonic   a key's records out of offset order, but for a rewind to a committed point by another life (G2)
    overlap        two records of one key in flight at once (G3)
    zombie         a call by a process that was reaped, or for a partition that was given up (G6)
    commit-back    the committed offset went back within one generation (G5)

Order is the history's order of lines. A process's calls that never ended are over when it was reaped.
"""

import bisect
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

from tests.support.history import (
    Assigned,
    Committed,
    End,
    Ended,
    Event,
    Fault,
    Faulted,
    Life,
    Outcome,
    Position,
    Produced,
    Revoked,
    Start,
)

NANOSECONDS = 1_000_000_000
RATE_WINDOW_S = 1.0
SHOWN_MAX = 20


class Anomaly(StrEnum):
    """What a history can have wrong."""

    LOST = "lost"
    UNSEEN = "unseen"
    PHANTOM = "phantom"
    DUPLICATE = "duplicate"
    NONMONOTONIC = "nonmonotonic"
    OVERLAP = "overlap"
    ZOMBIE = "zombie"
    COMMIT_BACK = "commit-back"


class Violation(NamedTuple):
    """One thing that must not be, and where."""

    anomaly: Anomaly
    what: str


class Checker(Protocol):
    """Reads a whole history; keeps nothing between two calls."""

    def check(self, events: Sequence[Event]) -> list[Violation]:
        """Return every violation of one guarantee, in the order of the history."""
        ...


class NothingLost:
    """G1: every produced record is done, and no commit passes one that is not."""

    def check(self, events: Sequence[Event]) -> list[Violation]:
        """Return lost and unseen records."""
        produced: dict[tuple[str, int], list[int]] = defaultdict(list)
        for event in events:
            if type(event) is Produced:
                produced[event.at[:2]].append(event.at.offset)
        done, lost = self._passed_too_early(events, {place: sorted(offsets) for place, offsets in produced.items()})
        violations = [Violation(Anomaly.LOST, f"{_name(at)}: a commit passed it before it was done") for at in lost]
        everything = (Position(*place, offset) for place, offsets in produced.items() for offset in offsets)
        missing = (at for at in everything if at not in done and at not in lost)
        return violations + [Violation(Anomaly.UNSEEN, f"{_name(at)}: produced, never done") for at in missing]

    @staticmethod
    def _passed_too_early(
        events: Sequence[Event], produced: dict[tuple[str, int], list[int]]
    ) -> tuple[set[Position], dict[Position, None]]:
        """Return what was ever done, and what was not when a commit passed it, in the order of the history."""
        passed: Counter[tuple[str, int]] = Counter()  # how many of a partition's records the commits have passed
        done: set[Position] = set()
        lost: dict[Position, None] = {}
        for event in events:
            if type(event) is End and event.outcome is Outcome.DONE:
                done.add(event.at)
            elif type(event) is Committed:
                place = event.at[:2]
                offsets = produced.get(place, [])
                now = max(passed[place], bisect.bisect_left(offsets, event.at.offset))
                crossed = (Position(*place, offset) for offset in offsets[passed[place] : now])
                lost.update((at, None) for at in crossed if at not in done)
                passed[place] = now
        return done, lost


class NothingInvented:
    """Every handled record was produced, with that key."""

    def check(self, events: Sequence[Event]) -> list[Violation]:
        """Return calls for records that were never produced so."""
        produced = {event.at: event.key for event in events if type(event) is Produced}
        violations: list[Violation] = []
        for event in events:
            if type(event) is Start:
                if event.at not in produced:
                    violations.append(Violation(Anomaly.PHANTOM, f"{_name(event.at)}: handled, never produced"))
                elif produced[event.at] != event.key:
                    what = f"{_name(event.at)}: produced with key {produced[event.at]!r}, handled with {event.key!r}"
                    violations.append(Violation(Anomaly.PHANTOM, what))
        return violations


class KeyOrder:
    """G2: a key's records start in offset order, but for a rewind to a committed point by another life."""

    def check(self, events: Sequence[Event]) -> list[Violation]:
        """Return calls out of order. A retry in place is in order; so is going on after the rewind."""
        last: dict[tuple[str, str], tuple[Start, int]] = {}
        committed: dict[tuple[str, int], int] = {}
        assignments: Counter[tuple[Life, str, int]] = Counter()  # a partition given up and got back is a new tenure
        violations: list[Violation] = []
        for event in events:
            if type(event) is Start:
                if event.key is None:
                    continue
                key = (event.at.topic, event.key)
                tenure = assignments[event.life, event.at.topic, event.at.partition]
                before, tenure_before = last.get(key, (None, 0))
                last[key] = (event, tenure)
                if before is None or before.at.partition != event.at.partition:
                    continue
                if event.life == before.life and tenure == tenure_before:
                    if event.at.offset < before.at.offset:
                        what = f"key {event.key!r}: {_name(event.at)} after {_name(before.at)}, in one life"
                        violations.append(Violation(Anomaly.NONMONOTONIC, what))
                elif event.at.offset <= before.at.offset and event.at.offset < committed.get(event.at[:2], 0):
                    what = f"key {event.key!r}: {_name(event.at)} again, below the commit {committed[event.at[:2]]}"
                    violations.append(Violation(Anomaly.NONMONOTONIC, what))
            elif type(event) is Committed:
                committed[event.at[:2]] = event.at.offset
            elif type(event) is Assigned:
                assignments[event.life, event.topic, event.partition] += 1
        return violations


class OneAtATime:
    """G3: at most one record of a (topic, key) is in flight."""

    def check(self, events: Sequence[Event]) -> list[Violation]:
        """Return calls that began while another of the same key ran."""
        running: dict[tuple[str, str], Start] = {}
        keys: dict[tuple[Life, Position], tuple[str, str]] = {}
        violations: list[Violation] = []
        for event in events:
            if type(event) is Start:
                if event.key is None:
                    continue
                key = (event.at.topic, event.key)
                other = running.get(key)
                if other is not None:
                    what = f"key {event.key!r}: {_name(event.at)} began while {_name(other.at)} ran in {other.life}"
                    violations.append(Violation(Anomaly.OVERLAP, what))
                running[key] = event
                keys[event.life, event.at] = key
            elif type(event) is End:
                key_of_end = keys.pop((event.life, event.at), None)
                if key_of_end is not None:
                    current = running.get(key_of_end)
                    if current is not None and (current.life, current.at) == (event.life, event.at):
                        del running[key_of_end]
            elif type(event) is Ended:
                for key in [key for key, start in running.items() if start.life == event.life]:
                    del running[key]
        return violations


class NoZombies:
    """G6: nothing is begun by the dead, nor for partitions that were given up."""

    def check(self, events: Sequence[Event]) -> list[Violation]:
        """Return the calls that had no right to begin or, of the dead, to end."""
        dead: set[Life] = set()
        given_up: set[tuple[Life, str, int]] = set()
        violations: list[Violation] = []
        for event in events:
            if type(event) is Start or type(event) is End:
                if event.life in dead:
                    what = f"{_name(event.at)}: {event.life} acted after it was reaped"
                    violations.append(Violation(Anomaly.ZOMBIE, what))
                elif type(event) is Start and (event.life, event.at.topic, event.at.partition) in given_up:
                    what = f"{_name(event.at)}: {event.life} began it after it gave the partition up"
                    violations.append(Violation(Anomaly.ZOMBIE, what))
            elif type(event) is Ended:
                dead.add(event.life)
            elif type(event) is Revoked:
                given_up.add((event.life, event.topic, event.partition))
            elif type(event) is Assigned:
                given_up.discard((event.life, event.topic, event.partition))
        return violations


class CommitsGoForward:
    """G5: within a generation the committed offset never goes back."""

    def check(self, events: Sequence[Event]) -> list[Violation]:
        """Return the commits that went back."""
        last: dict[tuple[str, int, int], int] = {}
        violations: list[Violation] = []
        for event in events:
            if type(event) is Committed:
                place = (event.at.topic, event.at.partition, event.generation)
                before = last.get(place, 0)
                if event.at.offset < before:
                    what = f"{_name(event.at)}: committed after {before}, in generation {event.generation}"
                    violations.append(Violation(Anomaly.COMMIT_BACK, what))
                last[place] = event.at.offset
        return violations


@dataclass(frozen=True)
class FaultCost:
    """What one life's end cost in records handled again, beside what the guarantee allows."""

    life: Life
    fault: Fault | None
    """None: nothing was done to this life, so nothing of it may be handled again."""
    duplicates: int
    in_flight: int
    """Calls that had begun and not ended."""
    rate: float
    """Records done per second in its last second."""
    bound: int

    @property
    def kept(self) -> bool:
        """Whether the guarantee holds."""
        return self.duplicates <= self.bound

    def __str__(self) -> str:
        """One line for a table of figures."""
        return (
            f"{self.life.member} {self.fault or 'no fault'}: {self.duplicates} handled again, "
            f"{self.bound} allowed ({self.in_flight} in flight, {self.rate:.0f}/s)"
        )


class DuplicatesWithinBound:
    """G4: after a kill at most in flight + rate * (commit interval + commit latency); after anything else none.

    A call is a duplicate when its record was called before, unless it is a retry: by the same life, after a failure.
    It is charged to the life that called the record last before.
    """

    def __init__(self, *, commit_interval_s: float, commit_latency_s: float) -> None:
        """Settle the window; both in seconds."""
        self._window_s = commit_interval_s + commit_latency_s

    def costs(self, events: Sequence[Event]) -> list[FaultCost]:
        """Return the cost of every life that was faulted, or handled something that was handled again."""
        duplicates = self._duplicates(events)
        faults: dict[Life, Faulted] = {}
        open_calls: Counter[Life] = Counter()
        done_at: dict[Life, list[int]] = defaultdict(list)
        begun: dict[Life, int] = {}
        for event in events:
            if type(event) is Start:
                open_calls[event.life] += 1
                begun.setdefault(event.life, event.time_ns)
            elif type(event) is End:
                open_calls[event.life] -= 1
                if event.outcome is Outcome.DONE:
                    done_at[event.life].append(event.time_ns)
            elif type(event) is Faulted:
                faults[event.life] = event
        costs: list[FaultCost] = []
        for life in [*faults, *(life for life in duplicates if life not in faults)]:
            faulted = faults.get(life)
            rate = _last_rate(done_at[life], begun.get(life, 0), faulted.time_ns) if faulted else 0.0
            hard = faulted is not None and faulted.fault in {Fault.KILL, Fault.STOP}
            bound = open_calls[life] + int(rate * self._window_s) if hard else 0
            fault = faulted.fault if faulted else None
            costs.append(FaultCost(life, fault, duplicates[life], open_calls[life], rate, bound))
        return costs

    def check(self, events: Sequence[Event]) -> list[Violation]:
        """Return the lives whose cost is over the bound."""
        return [Violation(Anomaly.DUPLICATE, str(cost)) for cost in self.costs(events) if not cost.kept]

    @staticmethod
    def _duplicates(events: Sequence[Event]) -> Counter[Life]:
        callers: dict[Position, Life] = {}
        failed: set[tuple[Life, Position]] = set()
        duplicates: Counter[Life] = Counter()
        for event in events:
            if type(event) is Start:
                before = callers.get(event.at)
                callers[event.at] = event.life
                if before is None or (before == event.life and (event.life, event.at) in failed):
                    continue
                duplicates[before] += 1
            elif type(event) is End and event.outcome is Outcome.FAILED:
                failed.add((event.life, event.at))
        return duplicates


def every_checker(*, commit_interval_s: float = 0.1, commit_latency_s: float = 0.1) -> list[Checker]:
    """Return one of each."""
    return [
        NothingLost(),
        NothingInvented(),
        DuplicatesWithinBound(commit_interval_s=commit_interval_s, commit_latency_s=commit_latency_s),
        KeyOrder(),
        OneAtATime(),
        NoZombies(),
        CommitsGoForward(),
    ]


def judge(events: Sequence[Event], checkers: Sequence[Checker]) -> list[Violation]:
    """Return what all checkers found."""
    return [violation for checker in checkers for violation in checker.check(events)]


def report(violations: Sequence[Violation]) -> str:
    """Return counts per anomaly and the first few of them, for an assertion's message."""
    counts = Counter(violation.anomaly for violation in violations)
    lines = [", ".join(f"{count} {anomaly}" for anomaly, count in counts.items()) or "nothing found"]
    lines += [f"  {violation.anomaly}: {violation.what}" for violation in violations[:SHOWN_MAX]]
    return "\n".join(lines)


def _last_rate(done_at: list[int], begun_ns: int, fault_ns: int) -> float:
    """Records done per second in the last second of a life; a killed process goes on for a moment after the line."""
    since = max(fault_ns - int(RATE_WINDOW_S * NANOSECONDS), begun_ns)
    count = sum(1 for time_ns in done_at if time_ns > since)
    return count * NANOSECONDS / max(fault_ns - since, NANOSECONDS // 100)


def _name(at: Position) -> str:
    return f"{at.topic}[{at.partition}]@{at.offset}"
