"""The history checker itself: bad histories are named for what they are, good ones are accepted."""

import time
from pathlib import Path

import pytest

from tests.support.checkers import Anomaly, DuplicatesWithinBound, every_checker, judge, report
from tests.support.history import (
    Committed,
    End,
    Ended,
    Event,
    Fault,
    HistoryWriter,
    Life,
    Outcome,
    Position,
    Produced,
    Start,
    format_event,
    parse_history,
    read_history,
)

A = Life("a-0", "1")
THREE = """
P t 0 0 =k
P t 0 1 =k
P t 0 2 =j
"""
ALL_DONE = """
S a-0 1 t 0 0 =k 10
E a-0 1 t 0 0 done 20
S a-0 1 t 0 1 =k 30
S a-0 1 t 0 2 =j 31
E a-0 1 t 0 2 done 35
E a-0 1 t 0 1 done 40
C t 0 3 1 50
"""
ONE_DONE = """
S a-0 1 t 0 0 =k 10
E a-0 1 t 0 0 done 20
"""

GOOD = {
    "everything done in order": THREE + ALL_DONE,
    "no record at all": "",
    "keyless records run together": """
P t 0 0 -
P t 0 1 -
S a-0 1 t 0 1 - 10
S a-0 1 t 0 0 - 11
E a-0 1 t 0 0 done 12
E a-0 1 t 0 1 done 13
""",
    "the same key in two topics runs together": """
P t 0 0 =k
P u 0 0 =k
S a-0 1 t 0 0 =k 10
S a-0 1 u 0 0 =k 11
E a-0 1 t 0 0 done 12
E a-0 1 u 0 0 done 13
""",
    "a retry in place is no duplicate": """
P t 0 0 =k
S a-0 1 t 0 0 =k 10
E a-0 1 t 0 0 failed 20
S a-0 1 t 0 0 =k 30
E a-0 1 t 0 0 done 40
""",
    "a kill in flight, handled again by the next life": """
P t 0 0 =k
P t 0 1 =k
S a-0 1 t 0 0 =k 10
E a-0 1 t 0 0 done 20
C t 0 1 1 25
S a-0 1 t 0 1 =k 30
F a-0 1 kill 31
D a-0 1 32
S a-0 2 t 0 1 =k 40
E a-0 2 t 0 1 done 50
C t 0 2 1 60
""",
    "a partition given up is begun by its next owner": """
P t 0 0 =k
P t 0 1 =k
A a-0 1 t 0 1
S a-0 1 t 0 0 =k 10
E a-0 1 t 0 0 done 20
R a-0 1 t 0 25
S b-0 1 t 0 1 =k 30
E b-0 1 t 0 1 done 40
""",
    "a partition got back is ours again": """
P t 0 0 =k
P t 0 1 =k
A a-0 1 t 0 1
R a-0 1 t 0 2
A a-0 1 t 0 3
S a-0 1 t 0 0 =k 10
E a-0 1 t 0 0 done 20
S a-0 1 t 0 1 =k 30
E a-0 1 t 0 1 done 40
""",
    "a commit may go back in another generation": THREE + ALL_DONE + "C t 0 2 2 60\n",
    "a term that ends cleanly costs nothing": THREE + ALL_DONE + "F a-0 1 term 60\nD a-0 1 70\n",
}

BAD: dict[str, tuple[set[Anomaly], str]] = {
    "a record in the middle is never handled, and passed": (
        {Anomaly.LOST},
        """
P t 0 0 =k
P t 0 1 =j
S a-0 1 t 0 0 =k 10
E a-0 1 t 0 0 done 20
C t 0 2 1 30
""",
    ),
    "a record in flight is passed by a commit, and done later": (
        {Anomaly.LOST},
        """
P t 0 0 =k
S a-0 1 t 0 0 =k 10
C t 0 1 1 15
E a-0 1 t 0 0 done 20
""",
    ),
    "a failed record is passed": (
        {Anomaly.LOST},
        """
P t 0 0 =k
S a-0 1 t 0 0 =k 10
E a-0 1 t 0 0 failed 20
C t 0 1 1 30
""",
    ),
    "an unknown outcome does not prove a record done": (
        {Anomaly.LOST},
        """
P t 0 0 =k
S a-0 1 t 0 0 =k 10
E a-0 1 t 0 0 unknown 20
C t 0 1 1 30
""",
    ),
    "a record killed in flight never comes back, and is passed": (
        {Anomaly.LOST},
        """
P t 0 0 =k
P t 0 1 =j
S a-0 1 t 0 0 =k 10
F a-0 1 kill 11
D a-0 1 12
S a-0 2 t 0 1 =j 20
E a-0 2 t 0 1 done 30
C t 0 2 1 40
""",
    ),
    "the tail is never handled": ({Anomaly.UNSEEN}, THREE + ONE_DONE),
    "a whole partition is never handled": ({Anomaly.UNSEEN}, THREE + ALL_DONE + "P t 1 0 =z\n"),
    "begun, never ended, nothing passed": ({Anomaly.UNSEEN}, "P t 0 0 =k\nS a-0 1 t 0 0 =k 10\n"),
    "handled, never produced": (
        {Anomaly.PHANTOM},
        THREE + ALL_DONE + "S a-0 1 t 0 9 =q 60\nE a-0 1 t 0 9 done 70\n",
    ),
    "handled with another key": (
        {Anomaly.PHANTOM},
        "P t 0 0 =k\nS a-0 1 t 0 0 =other 10\nE a-0 1 t 0 0 done 20\n",
    ),
    "handled twice by one life": (
        {Anomaly.DUPLICATE},
        THREE + ALL_DONE + "S a-0 1 t 0 2 =j 60\nE a-0 1 t 0 2 done 70\n",
    ),
    "handled twice after a term": (
        {Anomaly.DUPLICATE},
        """
P t 0 0 =k
S a-0 1 t 0 0 =k 10
E a-0 1 t 0 0 done 20
F a-0 1 term 30
D a-0 1 40
S a-0 2 t 0 0 =k 50
E a-0 2 t 0 0 done 60
""",
    ),
    "cut short by a term and begun again": (
        {Anomaly.DUPLICATE},
        """
P t 0 0 =k
S a-0 1 t 0 0 =k 10
F a-0 1 term 30
D a-0 1 40
S a-0 2 t 0 0 =k 50
E a-0 2 t 0 0 done 60
""",
    ),
    "handled twice although nobody was faulted": (
        {Anomaly.DUPLICATE},
        """
P t 0 0 =k
S a-0 1 t 0 0 =k 10
E a-0 1 t 0 0 done 20
S b-0 1 t 0 0 =k 30
E b-0 1 t 0 0 done 40
""",
    ),
    "a kill costs what was done long before it": (
        {Anomaly.DUPLICATE},
        """
P t 0 0 =k
P t 0 1 =j
S a-0 1 t 0 0 =k 1000000000
E a-0 1 t 0 0 done 1010000000
S a-0 1 t 0 1 =j 9000000000
F a-0 1 kill 9010000000
D a-0 1 9020000000
S a-0 2 t 0 0 =k 9030000000
E a-0 2 t 0 0 done 9040000000
S a-0 2 t 0 1 =j 9050000000
E a-0 2 t 0 1 done 9060000000
""",
    ),
    "a key's records in the wrong order": (
        {Anomaly.NONMONOTONIC},
        """
P t 0 0 =k
P t 0 1 =k
S a-0 1 t 0 1 =k 10
E a-0 1 t 0 1 done 20
S a-0 1 t 0 0 =k 30
E a-0 1 t 0 0 done 40
""",
    ),
    "a rewind below the committed point": (
        {Anomaly.NONMONOTONIC, Anomaly.DUPLICATE},
        """
P t 0 0 =k
P t 0 1 =k
S a-0 1 t 0 0 =k 1000000000
E a-0 1 t 0 0 done 1010000000
S a-0 1 t 0 1 =k 3000000000
E a-0 1 t 0 1 done 3010000000
C t 0 2 1 3100000000
F a-0 1 kill 3200000000
D a-0 1 3300000000
S a-0 2 t 0 0 =k 3400000000
E a-0 2 t 0 0 done 3500000000
""",
    ),
    "out of order after a rewind": (
        {Anomaly.NONMONOTONIC},
        """
P t 0 0 =k
P t 0 1 =k
S a-0 1 t 0 0 =k 10
F a-0 1 kill 30
D a-0 1 40
S a-0 2 t 0 1 =k 50
E a-0 2 t 0 1 done 60
S a-0 2 t 0 0 =k 70
E a-0 2 t 0 0 done 80
""",
    ),
    "two records of a key at once in one process": (
        {Anomaly.OVERLAP},
        """
P t 0 0 =k
P t 0 1 =k
S a-0 1 t 0 0 =k 10
S a-0 1 t 0 1 =k 11
E a-0 1 t 0 0 done 20
E a-0 1 t 0 1 done 21
""",
    ),
    "two records of a key at once in two processes": (
        {Anomaly.OVERLAP},
        """
P t 0 0 =k
P t 0 1 =k
S a-0 1 t 0 0 =k 10
S b-0 1 t 0 1 =k 11
E b-0 1 t 0 1 done 20
E a-0 1 t 0 0 done 21
""",
    ),
    "a key is begun elsewhere before the killed process is gone": (
        {Anomaly.OVERLAP},
        """
P t 0 0 =k
S a-0 1 t 0 0 =k 10
F a-0 1 kill 11
S b-0 1 t 0 0 =k 12
D a-0 1 13
E b-0 1 t 0 0 done 20
""",
    ),
    "a call by a process that was reaped": (
        {Anomaly.ZOMBIE},
        "P t 0 0 =k\nF a-0 1 kill 1\nD a-0 1 2\nS a-0 1 t 0 0 =k 10\nE b-0 1 t 0 0 done 20\n",
    ),
    "an end by a process that was reaped": (
        {Anomaly.ZOMBIE},
        "P t 0 0 =k\nS a-0 1 t 0 0 =k 1\nF a-0 1 kill 2\nD a-0 1 3\nE a-0 1 t 0 0 done 20\n",
    ),
    "a call for a partition that was given up": (
        {Anomaly.ZOMBIE},
        "P t 0 0 =k\nA a-0 1 t 0 1\nR a-0 1 t 0 2\nS a-0 1 t 0 0 =k 10\nE a-0 1 t 0 0 done 20\n",
    ),
    "the commit goes back within a generation": ({Anomaly.COMMIT_BACK}, THREE + ALL_DONE + "C t 0 2 1 60\n"),
    "the commit goes back after another generation's": (
        {Anomaly.COMMIT_BACK},
        THREE + ALL_DONE + "C t 0 3 2 60\nC t 0 1 2 70\n",
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_a_good_history_is_accepted(name: str) -> None:
    """Nothing is found where nothing is wrong."""
    violations = judge(_parse(GOOD[name]), every_checker())
    assert not violations, report(violations)


@pytest.mark.parametrize("name", BAD)
def test_a_bad_history_is_named_for_what_it_is(name: str) -> None:
    """Exactly the anomalies that were put in are found, under their names."""
    expected, text = BAD[name]
    violations = judge(_parse(text), every_checker())
    assert {violation.anomaly for violation in violations} == expected, report(violations)


def test_there_are_enough_bad_histories() -> None:
    """At least 20 of them, and every anomaly among them."""
    assert len(BAD) >= 20
    assert set[Anomaly]().union(*(expected for expected, _ in BAD.values())) == set(Anomaly)


def test_duplicates_are_charged_to_the_fault_that_caused_them() -> None:
    """Each fault has its own count, its own in-flight figure and its own bound."""
    text = """
S a-0 1 t 0 0 =k 1000000000
S a-0 1 t 0 1 =j 1000000001
E a-0 1 t 0 1 done 1100000000
F a-0 1 kill 1200000000
D a-0 1 1300000000
S a-0 2 t 0 0 =k 1400000000
S a-0 2 t 0 1 =j 1400000001
F a-0 2 kill 1500000000
D a-0 2 1600000000
S a-0 3 t 0 0 =k 1700000000
E a-0 3 t 0 0 done 1800000000
F a-0 3 term 1900000000
"""
    costs = DuplicatesWithinBound(commit_interval_s=0.1, commit_latency_s=0.1).costs(_parse(text))
    assert [(cost.life.incarnation, cost.fault, cost.duplicates, cost.in_flight) for cost in costs] == [
        ("1", Fault.KILL, 2, 1),
        ("2", Fault.KILL, 1, 2),
        ("3", Fault.TERM, 0, 0),
    ]
    assert costs[0].bound == 1 + int(5 * 0.2)  # one was done in a life of 0.2 s
    assert costs[2].bound == 0


@pytest.mark.parametrize(
    "event",
    [
        Produced(Position("t", 3, 7), "a b%=-\u00e9\n"),
        Produced(Position("t", 3, 7), None),
        Produced(Position("t", 3, 7), ""),
        Start(A, Position("t", 0, 1), "-", 5),
        End(A, Position("t", 0, 1), Outcome.UNKNOWN, 5),
        Committed(Position("t", 0, 1), 4, 5),
        Ended(A, 5),
    ],
)
def test_an_event_survives_its_line(event: Event) -> None:
    """What is written is read, whatever the key holds."""
    assert parse_history(format_event(event)) == [event]


@pytest.mark.parametrize("line", ["", "X", "S a 1 t 0 0 =k", "P t x 0 =k", "P t 0 0 k", "E a 1 t 0 0 perhaps 1"])
def test_a_line_that_is_no_event_is_refused_by_number(line: str) -> None:
    """A damaged history is never judged."""
    with pytest.raises(ValueError, match="line 2 is no event"):
        parse_history(f"P t 0 0 =k\n{line}\n")


def test_half_a_million_events_are_judged_in_seconds(tmp_path: Path) -> None:
    """A full broker run's history is written, read and judged fast enough for every run."""
    path = tmp_path / "history"
    records = 166_000
    with HistoryWriter(path) as writer:
        writer.write_all(Produced(Position("t", n % 8, n // 8), str(n % 1000)) for n in range(records))
        events: list[Event] = []
        for n in range(records):
            at = Position("t", n % 8, n // 8)
            events += [Start(A, at, str(n % 1000), n), End(A, at, Outcome.DONE, n)]
        writer.write_all(events)
    started = time.monotonic()
    violations = judge(read_history(path), every_checker())
    elapsed_s = time.monotonic() - started
    assert not violations, report(violations)
    print(f"{3 * records} events judged in {elapsed_s:.1f} s")
    assert elapsed_s < 20


def _parse(text: str) -> list[Event]:
    return parse_history("".join(f"{line}\n" for line in text.splitlines() if line))
