"""One rate limit by itself: what it allows, what it remembers, and rates at the ends of what can be asked for."""

import math
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parallel_consumer_runtime.core import Bounds, Engine, Gates, Ledger, PartitionKey, Rates
from parallel_consumer_runtime.core.rates import BURST_S, RateLimit
from parallel_consumer_runtime.handlers import Record


def start_all(limit: RateLimit, now: float, most: int = 10_000) -> int:
    """Start as many records of one name as the limit lets through at one moment."""
    count = 0
    while limit.ready_at("a", now) <= now and count < most:
        limit.spend("a", now)
        count += 1
    return count


@given(st.sampled_from([0.5, 4.0, 16.0, 256.0]), st.lists(st.integers(0, 3_000), min_size=1, max_size=20))
def test_the_allowance_is_what_may_start(rate: float, waits: list[int]) -> None:
    """Whenever it is asked, after whatever rest: so many start, not one more, and the next may at the time it names.

    Times are whole 1,024ths of a second and rates powers of two, so that no sum is rounded.
    """
    limit, now = RateLimit(rate), 1_000.0
    for wait in waits:
        now += wait / 1_024
        count, next_at = limit.allowance("a", now)
        assert start_all(limit, now) == count
        assert limit.allowance("a", now)[0] == 0
        assert limit.ready_at("a", now) == pytest.approx(next_at, abs=1e-9)


@pytest.mark.parametrize(("rate", "burst"), [(0.5, 1), (8.0, 1), (32.0, 3), (1_024.0, 102)])
def test_what_may_come_at_once_is_a_tenth_of_a_second(rate: float, burst: int) -> None:
    """And never less than one record, however low the rate."""
    limit = RateLimit(rate)
    assert start_all(limit, 50.0) == burst
    assert 50.0 < limit.ready_at("a", 50.0) <= 50.0 + 1 / rate
    assert limit.ready_at("another", 50.0) <= 50.0


def test_time_without_a_record_is_not_saved_up() -> None:
    """After an hour of rest no more may come at once than after a second."""
    limit = RateLimit(256.0)
    first = start_all(limit, 10.0)
    assert start_all(limit, 11.0) == start_all(limit, 3_600.0) == first == math.floor(256 * BURST_S)


def test_evenly_spaced_records_never_wait() -> None:
    """At exactly its rate a stream passes."""
    limit = RateLimit(8.0)
    for number in range(1_000):
        assert limit.ready_at("a", number / 8) <= number / 8
        limit.spend("a", number / 8)


def test_a_rate_of_nothing_never_opens() -> None:
    """Not now and not later: no timer is worth setting."""
    limit = RateLimit(0.0)
    assert limit.ready_at("a", 5.0) == math.inf
    assert limit.allowance("a", 5.0) == (0, math.inf)


@pytest.mark.parametrize("rate", [-1.0, math.inf, 1e18])
def test_a_rate_without_an_end_always_opens_and_remembers_nothing(rate: float) -> None:
    """No limit, and limits finer than the clock, cost no memory."""
    limit = RateLimit(rate)
    for name in range(100):
        assert limit.ready_at(name, 1e6) <= 1e6
        limit.spend(name, 1e6)
    assert limit.remembered == limit.forgotten == 0


def test_the_name_longest_without_a_record_is_forgotten_first() -> None:
    """Of three names and room for two the one that was used again is kept."""
    limit = RateLimit(1.0, names_max=2)
    for name in ("a", "b", "a", "c"):
        limit.spend(name, 10.0)
    assert limit.forgotten == 1
    assert limit.ready_at("b", 10.0) <= 10.0, "b may start again too early: the price of the bound"
    assert limit.ready_at("a", 10.0) == 12.0
    assert limit.ready_at("c", 10.0) == 11.0


def test_names_whose_wait_is_over_go_before_the_bound_is_reached() -> None:
    """Two of them for each new one, and they are not counted as forgotten."""
    limit = RateLimit(1.0, names_max=100)
    for name in range(10):
        limit.spend(name, 10.0)
    assert limit.remembered == 10
    for expected in (9, 8, 7):
        limit.spend(f"later {expected}", 11.0)
        assert limit.remembered == expected
    assert limit.forgotten == 0


@pytest.mark.parametrize("size_bytes", [1, 63, 64, 65, 10_000])
def test_keys_of_any_length_have_rates_of_their_own(size_bytes: int) -> None:
    """Keys that differ in their last byte only are two, a key in another topic is a third, the same one again waits."""
    engine = Engine("Unordered", Bounds(1_000, 1_000, 10**9), 100)
    gates = Gates(Rates(per_key=1.0), keys_max=2)
    engine.set_gates(gates)
    head = bytes(size_bytes - 1)
    for topic in ("t", "u"):
        engine.assign(PartitionKey(topic, 0), Ledger(0))
    engine.offer(
        PartitionKey("t", 0),
        [Record("t", 0, n, key, b"", 0, ()) for n, key in enumerate([head + b"a", head + b"b", head + b"a"])],
    )
    assert [task.record.offset for task in iter(lambda: engine.take(5.0), None)] == [0, 1]
    assert (gates.keys_remembered, gates.keys_forgotten) == (2, 0)
    engine.offer(PartitionKey("u", 0), [Record("u", 0, 0, head + b"b", b"", 0, ())])
    assert engine.take(5.0) is not None
    assert (gates.keys_remembered, gates.keys_forgotten) == (2, 1), (
        "no more than were asked for, and the loss is counted"
    )
    names = cast("list[tuple[str, bytes]]", list(gates._key._due))  # pyright: ignore[reportPrivateUsage]
    assert max(len(key) for _, key in names) <= 64, "memory follows their number, not their length"


@pytest.mark.parametrize("rates", [Rates(per_key=0.5), Rates(per_partition=0.5), Rates(member=0.5)])
def test_less_than_one_record_a_second_is_a_rate_too(rates: Rates) -> None:
    """One at once, the next after two seconds, and not a moment before."""
    engine = Engine("Key", Bounds(1_000, 1_000, 10**9), 100)
    engine.set_gates(Gates(rates))
    engine.assign(PartitionKey("t", 0), Ledger(0))
    engine.offer(PartitionKey("t", 0), [Record("t", 0, n, b"a", b"", 0, ()) for n in range(3)])
    for now in (10.0, 12.0, 14.0):
        if now > 10.0:
            assert engine.next_retry_at == now
            assert engine.take(now - 0.001) is None
        engine.wake_retries(now)
        task = engine.take(now)
        assert task is not None
        assert engine.take(now) is None
        engine.complete(task)
        assert engine.take(now) is None


def test_a_rate_of_keys_is_none_of_records_without_one() -> None:
    """They are of no key, so that no key's rate is theirs."""
    engine = Engine("Key", Bounds(1_000, 1_000, 10**9), 100)
    engine.set_gates(Gates(Rates(per_key=1.0)))
    engine.assign(PartitionKey("t", 0), Ledger(0))
    engine.offer(PartitionKey("t", 0), [Record("t", 0, n, None, b"", 0, ()) for n in range(10)])
    assert len(list(iter(lambda: engine.take(0.0), None))) == 10


def test_a_throttled_partition_wakes_as_many_as_may_start() -> None:
    """Of ten that wait one is freed when one may start, and three when a tenth of a second's worth may."""
    engine = Engine("Unordered", Bounds(1_000, 1_000, 10**9), 100)
    engine.set_gates(Gates(Rates(per_partition=32.0)))
    engine.assign(PartitionKey("t", 0), Ledger(0))
    engine.offer(PartitionKey("t", 0), [Record("t", 0, n, None, b"", 0, ()) for n in range(20)])
    assert len(list(iter(lambda: engine.take(10.0), None))) == 3
    at = engine.next_retry_at
    assert at == pytest.approx(10.025)
    assert engine.wake_retries(10.03) == 1
    assert len(list(iter(lambda: engine.take(10.03), None))) == 1
    assert engine.next_retry_at == pytest.approx(10.025 + 1 / 32)
    assert engine.wake_retries(20.0) == 3
    assert len(list(iter(lambda: engine.take(20.0), None))) == 3
    assert engine.statistics().gated == 13


def test_an_open_member_or_one_without_work_asks_for_no_timer() -> None:
    """A timer is for a rate that holds back what could start otherwise."""
    engine = Engine("Unordered", Bounds(1_000, 1_000, 10**9), 100)
    engine.set_gates(Gates(Rates(member=1.0)))
    engine.assign(PartitionKey("t", 0), Ledger(0))
    engine.offer(PartitionKey("t", 0), [Record("t", 0, n, None, b"", 0, ()) for n in range(2)])
    assert engine.next_retry_at is None
    assert engine.take(10.0) is not None
    assert engine.take(10.0) is None
    assert engine.next_retry_at == 11.0
    assert engine.take(11.0) is not None
    assert engine.take(11.5) is None
    assert engine.next_retry_at is None, "closed until 12.0, and nothing waits"
    engine.offer(PartitionKey("t", 0), [Record("t", 0, n, None, b"", 0, ()) for n in (2, 3)])
    assert engine.take(12.0) is not None
    assert engine.next_retry_at is None, "it was open when it was asked last"
