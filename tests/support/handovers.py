"""What became of a partition's records as it went from member to member: the maps' bytes against what the members did.

The referee is the map that a member found, and those that it left. A member is in order when

    unearned    is empty: what its commits newly call complete it has done (nothing is lost by it)
    taken_back  is empty: what the commit before it called complete stays complete (the map that it found was read whole)
    again       is empty: it called nothing that the map which it found calls complete, and nothing twice
    unreported  is empty: what it has done is complete in the last map that it left (nothing is repeated because of it)
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from parallel_consumer_runtime.offsets import OffsetMap, decode
from tests.support.commit_log import Commit, Tenure
from tests.support.history import End, Ended, Event, Life, Outcome, Position, Start

Place = tuple[int, int]
"""Partition and offset."""


class Conduct(NamedTuple):
    """What one member did that its commits do not bear out; places in order."""

    unearned: list[Place]
    taken_back: list[Place]
    again: list[Place]
    unreported: list[Place]

    @property
    def in_order(self) -> bool:
        """Whether commits and calls agree."""
        return not any(self)

    def __str__(self) -> str:
        """Count each, and show the first."""
        return ", ".join(
            f"{len(places)} {name}" + (f" (first {places[0]})" if places else "")
            for name, places in zip(self._fields, self, strict=True)
        )


class _Known(NamedTuple):
    """A map, unfolded: everything below `end` is complete but `incomplete`."""

    incomplete: frozenset[int]
    end: int

    def complete(self, offset: int) -> bool:
        return offset < self.end and offset not in self.incomplete

    def newly(self, before: "_Known") -> list[int]:
        """Return what is complete here and was not before."""
        candidates = [*before.incomplete, *range(before.end, self.end)]
        return sorted(offset for offset in candidates if self.complete(offset))


_NOTHING = _Known(frozenset(), 0)


class _Calls(NamedTuple):
    started: Counter[Place]
    done: set[Place]


def conduct(tenures: Mapping[int, Sequence[Tenure]], events: Iterable[Event]) -> dict[str, Conduct]:
    """Return the conduct of every member that owned a partition, by its name. The topic's logs begin at 0.

    Args:
        tenures: of each partition, in their order.
        events: the history; each name lives once in it.

    Raises:
        OffsetMetadataError: a commit's metadata is no map.
    """
    calls: defaultdict[str, _Calls] = defaultdict(lambda: _Calls(Counter(), set()))
    for event in events:
        if isinstance(event, Start):
            calls[event.life.member].started[event.at.partition, event.at.offset] += 1
        elif isinstance(event, End) and event.outcome is Outcome.DONE:
            calls[event.life.member].done.add((event.at.partition, event.at.offset))
    found = {name: Conduct([], [], [], []) for all_of in tenures.values() for name in (one.owner for one in all_of)}
    for partition, all_of in tenures.items():
        for name in {one.owner for one in all_of}:
            _judge(partition, [one for one in all_of if one.owner == name], calls[name], found[name])
    return found


def merged(of: Iterable[Conduct]) -> Conduct:
    """Return the conduct of several members as one."""
    whole = Conduct([], [], [], [])
    for one in of:
        for places, more in zip(whole, one, strict=True):
            places.extend(more)
    return whole


def _judge(partition: int, tenures: Sequence[Tenure], calls: _Calls, into: Conduct) -> None:
    began: list[_Known] = []
    known = _NOTHING
    for tenure in tenures:
        known = _unfold(tenure.before)
        began.append(known)
        for commit in tenure.commits:
            following = _unfold(commit)
            into.unearned.extend((partition, o) for o in following.newly(known) if (partition, o) not in calls.done)
            into.taken_back.extend((partition, o) for o in known.newly(following))
            known = following
    for place, times in sorted(calls.started.items()):
        # At most once in each tenure, and only where the map that it began with leaves it open.
        if place[0] == partition and times > sum(not map_.complete(place[1]) for map_ in began):
            into.again.append(place)
    left = sorted(place for place in calls.done if place[0] == partition and not known.complete(place[1]))
    into.unreported.extend(left)


def _unfold(commit: Commit | None) -> _Known:
    if commit is None:
        return _NOTHING
    known: OffsetMap = decode(commit.metadata, commit.offset)
    gaps = frozenset(offset for first, last in known.incomplete for offset in range(first, last + 1))
    return _Known(gaps, known.highest + 1)


def complete_above(commit: Commit) -> int:
    """Return how many offsets above the committed one the map calls complete: what only the map can tell."""
    known = _unfold(commit)
    return max(0, known.end - commit.offset - len(known.incomplete))


class Repeat(NamedTuple):
    """A record that was called again."""

    at: Position
    before: str
    """Who called it before."""
    again: str


def repeats(events: Iterable[Event]) -> list[Repeat]:
    """Return every call of a record that was called before, by whomever."""
    callers: dict[Position, str] = {}
    found: list[Repeat] = []
    for event in events:
        if isinstance(event, Start):
            if (before := callers.get(event.at)) is not None:
                found.append(Repeat(event.at, before, event.life.member))
            callers[event.at] = event.life.member
    return found


def overlaps(events: Iterable[Event]) -> Counter[tuple[str, str]]:
    """Count the calls that began while another one of their key ran: (who ran, who began)."""
    running: defaultdict[str, dict[tuple[Life, Position], None]] = defaultdict(dict)
    keys: dict[Position, str] = {}
    found: Counter[tuple[str, str]] = Counter()
    for event in events:
        if isinstance(event, Start) and event.key is not None:
            keys[event.at] = event.key
            found.update({(life.member, event.life.member) for life, _ in running[event.key]})
            running[event.key][event.life, event.at] = None
        elif isinstance(event, End) and event.at in keys:
            running[keys[event.at]].pop((event.life, event.at), None)
        elif isinstance(event, Ended):
            for calls in running.values():
                for call in [call for call in calls if call[0] == event.life]:
                    del calls[call]
    return found
