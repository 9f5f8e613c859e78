"""The judge of handovers finds what is planted, and nothing else; so does the reader of the coordinator's log."""

import struct

import pytest

from parallel_consumer_runtime.offsets import OffsetMap, encode
from tests.support.commit_log import Commit, Tenure, tenures_of
from tests.support.handovers import Conduct, complete_above, conduct, merged, overlaps, repeats
from tests.support.history import End, Ended, Event, Life, Outcome, Position, Start
from tests.support.kafka_groups import CommitPlace, CommitRecord, GroupRecord, Member, parse_commit, place_of_key

OURS, JAVA = Life("ours", "1"), Life("java", "1")


def _commit(base: int, *incomplete: tuple[int, int], highest: int | None = None) -> Commit:
    return Commit(base, encode(OffsetMap(base, base - 1 if highest is None else highest, incomplete)))


def _calls(life: Life, *offsets: int, ended: bool = True) -> list[Event]:
    events: list[Event] = []
    for offset in offsets:
        at = Position("t", 0, offset)
        events.append(Start(life, at, f"key-{offset}", 0))
        if ended:
            events.append(End(life, at, Outcome.DONE, 0))
    return events


FOUND = _commit(2, (2, 2), (4, 4), highest=5)
"""What ours find: 0, 1, 3 and 5 are complete."""
LEFT = _commit(8)


@pytest.mark.parametrize(
    ("commits", "events", "expected"),
    [
        ([LEFT], _calls(OURS, 2, 4, 6, 7), Conduct([], [], [], [])),
        ([_commit(4, (4, 4), highest=6), LEFT], _calls(OURS, 2, 4, 6, 7), Conduct([], [], [], [])),
        ([LEFT], _calls(OURS, 2, 4, 6), Conduct([(0, 7)], [], [], [])),
        ([LEFT], [*_calls(OURS, 2, 4, 6), *_calls(OURS, 7, ended=False)], Conduct([(0, 7)], [], [], [])),
        ([_commit(2), LEFT], _calls(OURS, 2, 4, 6, 7), Conduct([(0, 3), (0, 5)], [(0, 3), (0, 5)], [], [])),
        ([LEFT], _calls(OURS, 2, 3, 4, 6, 7), Conduct([], [], [(0, 3)], [])),
        ([LEFT], _calls(OURS, 2, 4, 6, 6, 7), Conduct([], [], [(0, 6)], [])),
        ([LEFT], _calls(OURS, 2, 4, 6, 7, 8), Conduct([], [], [], [(0, 8)])),
        ([], _calls(OURS, 2), Conduct([], [], [], [(0, 2)])),
        ([], [], Conduct([], [], [], [])),
    ],
    ids=["good", "good-map", "undone", "unended", "taken-back", "map-ignored", "twice", "late", "no-commit", "idle"],
)
def test_a_members_conduct_is_judged_by_the_bytes(
    commits: list[Commit], events: list[Event], expected: Conduct
) -> None:
    """What a commit claims, takes back or leaves out, and calls that the map forbids, are each named with their place."""
    tenures = {0: [Tenure("java", None, [FOUND]), Tenure("ours", FOUND, commits)]}
    found = conduct(tenures, [*_calls(JAVA, 0, 1, 3, 5), *events])
    assert found["ours"] == expected
    assert found["ours"].in_order == (not any(expected))
    assert found["java"] == Conduct([], [], [], [])


def test_a_member_may_call_once_in_each_tenure_what_the_map_leaves_open() -> None:
    """A partition that comes back with a record still open is no reason to complain; a third call is."""
    tenures = {0: [Tenure("ours", None, []), Tenure("java", None, []), Tenure("ours", None, [_commit(1)])]}
    assert conduct(tenures, _calls(OURS, 0, 0))["ours"].in_order
    assert conduct(tenures, _calls(OURS, 0, 0, 0))["ours"].again == [(0, 0)]


def test_a_commits_owner_is_the_generations_or_the_one_before() -> None:
    """While a partition is on its way, only who gives it up may commit it."""

    def generation(number: int, **owners: tuple[int, ...]) -> GroupRecord:
        members = tuple(
            Member(name, None, name, tuple(("t", partition) for partition in partitions))
            for name, partitions in owners.items()
        )
        return GroupRecord("g", number, "cooperative-sticky", None, members)

    def committed(partition: int, offset: int) -> CommitRecord:
        return CommitRecord(CommitPlace("g", "t", partition), offset, "")

    records: list[CommitRecord | GroupRecord] = [
        generation(1, java=(0, 1)),
        committed(0, 5),
        generation(2, java=(0,), ours=()),
        committed(1, 7),
        generation(3, java=(0,), ours=(1,)),
        committed(1, 8),
        committed(0, 6),
        generation(4),
    ]
    five, six, seven, eight = (Commit(offset, "") for offset in (5, 6, 7, 8))
    assert tenures_of(records, "t") == {
        0: [Tenure("java", None, [five, six])],
        1: [Tenure("java", None, [seven]), Tenure("ours", seven, [eight])],
    }


def test_repeats_and_overlaps_name_both_sides() -> None:
    """Who had it before and who has it again; who ran and who began beside it; the reaped run nothing."""
    one, other = Position("t", 0, 1), Position("t", 0, 2)
    events: list[Event] = [
        Start(JAVA, one, "a", 0),
        Start(OURS, one, "a", 1),
        End(OURS, one, Outcome.DONE, 2),
        Start(OURS, other, "a", 3),
        Ended(JAVA, 4),
        End(OURS, other, Outcome.DONE, 5),
        Start(OURS, Position("t", 0, 3), "a", 6),
    ]
    assert [(found.at, found.before, found.again) for found in repeats(events)] == [(one, "java", "ours")]
    assert overlaps(events) == {("java", "ours"): 2}


def test_conducts_add_up() -> None:
    """Each column by itself."""
    whole = merged([Conduct([(0, 1)], [], [], []), Conduct([(1, 1)], [], [(2, 2)], [])])
    assert whole == Conduct([(0, 1), (1, 1)], [], [(2, 2)], [])
    assert str(whole) == "2 unearned (first (0, 1)), 0 taken_back, 1 again (first (2, 2)), 0 unreported"
    assert complete_above(FOUND) == 2
    assert complete_above(LEFT) == 0


def test_commits_of_every_version_are_read() -> None:
    """As the coordinator wrote them, with and without a leader's epoch, with plain and with compact strings."""

    def text(value: str) -> bytes:
        return struct.pack(">h", len(value)) + value.encode()

    key = struct.pack(">h", 1) + text("g") + text("t") + struct.pack(">i", 3)
    place = place_of_key(key)
    assert place is not None
    assert place == CommitPlace("g", "t", 3)
    assert place_of_key(struct.pack(">h", 2) + text("g")) is None
    long = "x" * 200
    times = struct.pack(">qq", 1, 2)
    for version, value in {
        0: struct.pack(">q", 42) + text(long) + times[:8],
        1: struct.pack(">q", 42) + text(long) + times,
        3: struct.pack(">qi", 42, 0) + text(long) + times[:8],
        4: struct.pack(">qi", 42, 0) + bytes([201 & 0x7F | 0x80, 201 >> 7]) + long.encode() + times[:8] + b"\0",
    }.items():
        assert parse_commit(place, struct.pack(">h", version) + value) == CommitRecord(place, 42, long)
    with pytest.raises(ValueError, match="version 5"):
        parse_commit(place, struct.pack(">h", 5))
