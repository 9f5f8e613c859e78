"""The example's parts: the data, the one-pass computation, the handler against it, and the loader's pacing."""

import asyncio
import itertools
from collections import Counter

import orjson
import pytest

from flights import checker, data, handlers, loader
from parallel_consumer_runtime.handlers import Context, Record, Result


def flight(
    number: int, tail: str | None, at: int, delays: tuple[int | None, int | None], air: int | None
) -> data.Flight:
    """Return a flight scheduled at a minute."""
    return data.Flight(number, tail, "AA", 1, "JFK", "LAX", at, *delays, air)


SMALL = [
    flight(0, "N1", 100, (10, 5), 60),  # leaves at 110, lands at 170
    flight(1, None, 110, (3, None), 30),
    flight(2, "N2", 120, (-4, -9), 30),
    flight(3, "N1", 200, (2, -7), 50),  # leaves at 202, lands at 252
    flight(4, "N1", 300, (None, None), None),  # cancelled: nobody knows where the aircraft was
    flight(5, "N1", 400, (0, None), None),  # left, and was not tracked
    flight(6, "N1", 500, (1, 1), 10),
]
EXPECTED = [
    ("N1", 15, None),
    (None, 3, None),
    ("N2", -13, None),
    ("N1", 10, 32),
    ("N1", 10, None),
    ("N1", 10, None),
    ("N1", 12, None),
]


@pytest.fixture(scope="module")
def flights() -> list[data.Flight]:
    """All flights."""
    return data.read()


def handle(flights: list[data.Flight], monkeypatch: pytest.MonkeyPatch) -> list[Result]:
    """Return what the handler says to each, one after the other, from an empty memory."""
    monkeypatch.setattr(handlers, "CALL_S", 0)
    monkeypatch.setattr(handlers, "_aircraft", {})

    async def run() -> list[Result]:
        context = Context("flights-0", 1)
        records = (Record("flights", 0, one.id, *loader.encode(one), 0, ()) for one in flights)
        return [await handlers.on_flight(record, context) for record in records]

    return asyncio.run(run())


def test_the_one_pass_computation_on_flights_by_hand() -> None:
    """Delays add up per aircraft; a turnaround needs a landing that is known; a keyless flight has no history."""
    assert [tuple(delay) for delay in checker.one_pass(SMALL)] == EXPECTED


def test_the_data_is_what_it_is_said_to_be(flights: list[data.Flight]) -> None:
    """Counts, order in time, and flights that the source knows little of."""
    assert len(flights) == data.FLIGHTS
    assert len({one.tail for one in flights} - {None}) == data.AIRCRAFT
    assert sum(one.tail is None for one in flights) == data.KEYLESS
    assert all(before.scheduled_min <= after.scheduled_min for before, after in itertools.pairwise(flights))
    assert [one.id for one in flights[:3]] == [0, 1, 2]
    assert sum(one.departure_delay_min is None for one in flights) == 8255


def test_the_handler_agrees_with_the_one_pass_computation(
    flights: list[data.Flight], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In order, the handler's results are the checker's, field by field."""
    for some in (SMALL, flights[:20_000]):
        for result, expected in zip(handle(some, monkeypatch), checker.one_pass(some), strict=True):
            found = orjson.loads(result.value or b"")
            assert result.key == (expected.tail.encode() if expected.tail else None)
            assert (found["accumulated_delay"], found["turnaround"]) == (
                expected.accumulated_min,
                expected.turnaround_min,
            )


def judge(results: list[tuple[str | None, int, int, int | None]]) -> checker.Verdict:
    """Return the verdict on results (tail, id, accumulated, turnaround) to the flights above."""
    judging = checker.Checker("127.0.0.1:1", checker.one_pass(SMALL))
    for tail, number, total, turnaround in results:
        value = orjson.dumps({"id": number, "accumulated_delay": total, "turnaround": turnaround})
        judging.compare(None if tail is None else tail.encode(), value)
    return judging.verdict


RIGHT = [(tail, number, total, turnaround) for number, (tail, total, turnaround) in enumerate(EXPECTED)]


@pytest.mark.parametrize(
    ("results", "verdict"),
    [
        (RIGHT, (7, 0, 0, 0)),
        ([RIGHT[2], *RIGHT[:2], *RIGHT[3:]], (7, 0, 0, 0)),  # aircraft among each other have no order
        (RIGHT[1:], (6, 0, 0, 0)),
        ([*RIGHT, RIGHT[2]], (7, 1, 0, 0)),
        ([*RIGHT[:6], ("N1", 6, 13, None)], (7, 0, 1, 0)),
        ([*RIGHT[:6], ("N2", 6, 12, None)], (7, 0, 1, 0)),
        ([*RIGHT[:3], RIGHT[4], RIGHT[3], *RIGHT[5:]], (7, 0, 0, 1)),
    ],
    ids=["right", "interleaved", "missing", "twice", "wrong sum", "wrong key", "out of order"],
)
def test_the_checker_bites(results: list[tuple[str | None, int, int, int | None]], verdict: tuple[int, ...]) -> None:
    """What is missing, twice, different or out of order is counted as that, and as nothing else."""
    assert tuple(judge(results)) == verdict


def test_the_loader_knows_how_far_ahead_it_is() -> None:
    """Bytes count from their acknowledgement to the commit above them, per partition."""
    ahead = loader.Ahead()
    for offset in range(10):
        ahead.produced(0, offset, 100)
    ahead.produced(1, 0, 400)
    assert (ahead.size_bytes[:2], ahead.worst_bytes) == ([1000, 400], 1000)
    ahead.committed(0, 7)
    assert (ahead.size_bytes[:2], ahead.worst_bytes) == ([300, 400], 400)
    ahead.committed(0, 7)
    ahead.committed(1, -1001)  # no commit yet
    assert ahead.worst_bytes == 400


def test_a_record_is_small_enough_for_the_embedded_broker(flights: list[data.Flight]) -> None:
    """Four megabytes ahead are less than the five that a partition keeps, with a batch that is on its way."""
    sizes = [
        len(key or b"") + len(value) + loader.RECORD_OVERHEAD_BYTES for key, value in map(loader.encode, flights[:5000])
    ]
    assert loader.AHEAD_MAX_BYTES + loader.CHECK_EVERY * max(sizes) < 5_000_000
    assert Counter(size > 300 for size in sizes) == {False: 5000}
