"""Rate limits hold to within a twentieth, scheduled records wait alone, ignored keys are complete at once: on a fake clock."""

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parallel_consumer_runtime.core import Bounds, Engine, Gates, Ledger, PartitionKey, Rates
from parallel_consumer_runtime.core.rates import RateLimit
from parallel_consumer_runtime.handlers import Record

WIDE = Bounds(1_000_000, 1_000_000, 10**9)


def make(gates: Gates, partitions: int = 1, keys: int = 1000, records: int = 5000, ordering: str = "Key") -> Engine:
    """Return an engine with records spread over partitions and keys, an hour's work at most."""
    engine = Engine(ordering, WIDE, 100)
    engine.set_gates(gates)
    for number in range(partitions):
        key = PartitionKey("t", number)
        engine.assign(key, Ledger(0))
        engine.offer(key, [Record("t", number, n, b"%d" % (n % keys), b"", n, ()) for n in range(records)])
    return engine


def play(engine: Engine, until_s: float, begin_s: float = 0.0) -> list[tuple[float, Record]]:
    """Run everything as soon as it may run; return what started, and when. Jumps from one due time to the next."""
    started: list[tuple[float, Record]] = []
    now = begin_s
    while now < until_s:
        engine.wake_retries(now)
        while (task := engine.take(now)) is not None:
            started.append((now, task.record))
            engine.complete(task)
        following = engine.next_retry_at
        if following is None:
            break
        assert following > now, "a time that is past would be a busy loop"
        now = following
    return started


@pytest.mark.proves(18)
@pytest.mark.parametrize("rate", [0.5, 7.0, 50.0, 333.0, 400.0])
def test_the_members_rate_holds_within_a_twentieth(rate: float) -> None:
    """Over ten seconds, with far more to do than the rate allows."""
    started = play(make(Gates(Rates(member=rate)), records=20_000), 10.0)
    assert len(started) == pytest.approx(rate * 10, rel=0.05, abs=1)


@pytest.mark.proves(18)
@pytest.mark.parametrize("rate", [1.0, 20.0, 300.0])
def test_each_partition_has_its_own_rate(rate: float) -> None:
    """Three partitions side by side, each at the rate, none at another's cost."""
    started = play(make(Gates(Rates(per_partition=rate)), partitions=3), 10.0)
    counted = Counter(record.partition for _, record in started)
    assert set(counted) == {0, 1, 2}
    for count in counted.values():
        assert count == pytest.approx(rate * 10, rel=0.05, abs=1)


@pytest.mark.proves(18)
def test_each_key_has_its_own_rate_and_its_order() -> None:
    """One busy key waits for its quota; the others are not held back by it."""
    engine = make(Gates(Rates(per_key=2.0)), keys=4, records=4000)
    started = play(engine, 10.0)
    for key in (b"0", b"1", b"2", b"3"):
        offsets = [record.offset for _, record in started if record.key == key]
        assert len(offsets) == pytest.approx(20, abs=1)
        assert offsets == sorted(offsets)


@pytest.mark.proves(18)
@pytest.mark.parametrize("rates", [Rates(member=0), Rates(per_partition=0), Rates(per_key=0)])
def test_a_rate_of_nothing_pauses_at_once_and_any_other_goes_on(rates: Rates) -> None:
    """0 starts nothing and asks for no timer; a new rate frees what waited."""
    engine = make(Gates(Rates()), records=100)
    assert engine.take(0.0) is not None
    engine.set_gates(Gates(rates))
    assert engine.take(0.0) is None
    assert engine.next_retry_at is None
    engine.set_gates(Gates(Rates()))
    assert len(play(engine, 10.0)) == 99


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), st.floats(0, 2)), max_size=200), st.floats(0.1, 100))
def test_no_window_holds_more_than_the_rate_and_its_burst(calls: list[tuple[str, float]], rate: float) -> None:
    """Whatever the times: in any window of length w, at most rate x (w + 0.1) + 1 of one name."""
    limit, now = RateLimit(rate, names_max=10), 0.0
    starts: dict[str, list[float]] = {}
    for name, wait_s in calls:
        now += wait_s
        if limit.ready_at(name, now) <= now:
            limit.spend(name, now)
            starts.setdefault(name, []).append(now)
    for times in starts.values():
        for first in range(len(times)):
            for last in range(first, len(times)):
                assert last - first + 1 <= rate * (times[last] - times[first] + 0.1) + 1 + 1e-6


def test_rates_of_many_keys_are_forgotten_when_they_are_spent_or_too_many() -> None:
    """Memory is bounded: by time when keys come slowly, by number when they come fast, and the latter is counted."""
    slow = RateLimit(10.0, names_max=1000)
    for number in range(10_000):
        slow.spend(number, number * 0.1)
    assert slow.remembered < 10
    assert slow.forgotten == 0
    fast = RateLimit(0.001, names_max=1000)
    for number in range(10_000):
        fast.spend(number, number * 0.001)
    assert fast.remembered <= 1000
    assert fast.forgotten == 9000


@pytest.mark.proves(20)
def test_a_record_that_is_early_waits_without_holding_others_back() -> None:
    """Its key waits behind it, because order comes first; every other key goes on."""

    def schedule(record: Record) -> float:
        return 60.0 if record.offset == 10 else -math.inf

    engine = make(Gates(Rates(), schedule=schedule), keys=10, records=100)
    early = play(engine, 59.0)
    assert len(early) == 91, "nine keys, and the first record of the tenth"
    assert engine.next_retry_at == 60.0
    late = play(engine, 61.0, begin_s=60.0)
    assert [record.offset for _, record in late] == list(range(10, 100, 10))


@pytest.mark.proves(23)
def test_an_ignored_key_is_complete_without_a_call_and_counted() -> None:
    """Live: it takes effect with the next record, and ends with the setting."""
    engine = make(Gates(Rates(), ignored_keys=[b"3"]), keys=10, records=100)
    started = play(engine, 1.0)
    assert len(started) == 90
    assert all(record.key != b"3" for _, record in started)
    (commit,) = engine.commits()
    assert (commit.offset, commit.incomplete) == (100, ())
    assert engine.statistics().ignored == 10
    engine.set_gates(Gates(Rates()))
    key = PartitionKey("t", 0)
    engine.offer(key, [Record("t", 0, 100, b"3", b"", 0, ())])
    assert len(play(engine, 1.0)) == 1


def test_what_waits_at_a_gate_goes_with_its_partition() -> None:
    """Revoked while throttled and scheduled: nothing is left, and its keys are free for the next assignment."""
    engine = make(Gates(Rates(per_partition=1.0, per_key=0.1)), keys=5, records=50)
    play(engine, 2.0)
    engine.revoke([PartitionKey("t", 0)])
    statistics = engine.statistics()
    assert (statistics.gated, statistics.ready, statistics.buffered) == (0, 0, 0)
    engine.wake_retries(1e9)
    assert engine.take(1e9) is None
