"""Backoff and the adaptive limiter, on services whose knee is known."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parallel_consumer_runtime.core import AdaptiveLimiter, RetryPolicy, Sample


@given(st.integers(1, 10_000), st.floats(0, 1, exclude_max=True))
def test_backoff_stays_between_half_and_the_whole(attempt: int, jitter: float) -> None:
    """However many attempts, the wait is at least half of the doubled backoff and never above the maximum."""
    policy = RetryPolicy(0, 0.2, 30.0)
    full = min(30.0, 0.2 * 2 ** min(attempt - 1, 60))
    assert full / 2 <= policy.backoff_s(attempt, jitter) <= full


def test_backoff_doubles_up_to_its_maximum() -> None:
    """Without jitter's luck half of it: 0.1, 0.2, 0.4 s, then the maximum, however often it failed."""
    policy = RetryPolicy(0, 0.2, 1.0)
    assert [policy.backoff_s(attempt, 0.0) for attempt in (1, 2, 3, 4, 10_000)] == [0.1, 0.2, 0.4, 0.5, 0.5]
    assert policy.backoff_s(2, 0.5) == pytest.approx(0.3)


def test_attempts_end_when_they_are_limited() -> None:
    """0 is without end; 3 means the third attempt was the last."""
    assert not RetryPolicy(0, 0.1, 1).exhausted(1_000_000)
    assert [RetryPolicy(3, 0.1, 1).exhausted(attempt) for attempt in (1, 2, 3)] == [False, False, True]


def settle(limiter: AdaptiveLimiter, knee: int, base_s: float = 0.01, rounds: int = 300) -> int:
    """Run a service that queues above its knee."""
    for _ in range(rounds):
        limit = limiter.limit
        latency_s = base_s * max(1.0, limit / knee)
        limiter.update(Sample(round(limit / latency_s), 0, latency_s, saturated=True))
    return limiter.limit


@pytest.mark.parametrize("knee", [20, 100, 400])
def test_the_limiter_finds_the_knee(knee: int) -> None:
    """It settles at the knee, above it by no more than the square root that keeps it probing, twice over."""
    limit = settle(AdaptiveLimiter(1, 1000), knee)
    assert knee <= limit <= knee + 3 * knee**0.5


def test_the_limiter_keeps_its_bounds() -> None:
    """Neither an endless nor a hopeless service moves it out of its bounds."""
    assert settle(AdaptiveLimiter(8, 500), 10_000) == 500
    limiter = AdaptiveLimiter(8, 500)
    for _ in range(100):
        limiter.update(Sample(0, 100, 1.0, saturated=True))
    assert limiter.limit == 8


def test_without_backlog_nothing_is_probed() -> None:
    """A consumer with little to do keeps its limit."""
    limiter = AdaptiveLimiter(8, 500)
    for _ in range(100):
        limiter.update(Sample(10, 0, 0.01, saturated=False))
    assert limiter.limit == 8


def test_new_bounds_keep_what_was_learnt() -> None:
    """A live change of the bounds cuts the limit into them and no more."""
    limiter = AdaptiveLimiter(1, 1000)
    settle(limiter, 100)
    learnt = limiter.limit
    limiter.bound(1, 500)
    assert limiter.limit == learnt
    limiter.bound(1, 50)
    assert limiter.limit == 50


def test_an_interval_without_a_call_teaches_nothing() -> None:
    """Idle, the limit stays, and so does what an unloaded service is known to show."""
    limiter = AdaptiveLimiter(8, 500)
    settle(limiter, 100)
    learnt = limiter.limit
    for _ in range(200):
        assert limiter.update(Sample(0, 0, 0.0, saturated=True)) == learnt
    assert settle(limiter, 100) <= 130


def at(limit: int) -> AdaptiveLimiter:
    """Return a limiter that stands at a limit far from its bounds, for a service that takes 10 ms when it is not loaded."""
    limiter = AdaptiveLimiter(limit, 1_000)
    limiter.bound(1, 1_000)
    limiter.update(Sample(1, 0, 0.01, saturated=False))
    assert limiter.limit == limit
    return limiter


@pytest.mark.parametrize("latency_s", [0.01, 0.008])
@pytest.mark.parametrize("completed", [1, 1_000])
def test_while_the_service_is_not_slower_the_limit_grows_by_its_root(latency_s: float, completed: int) -> None:
    """Sixteen become twenty, and twenty-four: however few calls showed it."""
    limiter = at(16)
    assert [limiter.update(Sample(completed, 0, latency_s, saturated=True)) for _ in range(2)] == [20, 24]


def test_a_service_that_takes_no_time_is_not_slow() -> None:
    """A clock too coarse to see it says nothing against a higher limit."""
    assert at(16).update(Sample(10, 0, 0.0, saturated=True)) == 20


@pytest.mark.parametrize(("latency_s", "limit"), [(0.0125, 98), (0.02, 92), (0.2, 92)])
def test_a_slower_service_pulls_the_limit_down_slowly(latency_s: float, limit: int) -> None:
    """A fifth of the way to where it did not queue, and never further than a tenth less: one bad interval proves little."""
    assert at(100).update(Sample(10, 0, latency_s, saturated=True)) == limit


@pytest.mark.parametrize(("completed", "failed", "limit"), [(90, 10, 110), (89, 11, 80), (10, 10, 80), (0, 1, 80)])
def test_more_than_a_tenth_of_failures_cuts_a_fifth_off(completed: int, failed: int, limit: int) -> None:
    """Whatever the latency: refusals are quick."""
    assert at(100).update(Sample(completed, failed, 0.001, saturated=True)) == limit


def test_a_faster_answer_is_what_slow_is_measured_against() -> None:
    """The best that was seen counts, also while nothing waits."""
    limiter = at(100)
    limiter.update(Sample(10, 0, 0.005, saturated=False))
    assert limiter.update(Sample(10, 0, 0.01, saturated=True)) == 92


def test_from_time_to_time_a_lower_limit_measures_the_service_anew() -> None:
    """Each 120 intervals one at seven tenths, whose latency is believed even if it is higher; then on from where it was."""
    limiter = AdaptiveLimiter(500, 500)
    limiter.bound(1, 500)
    loaded = Sample(10, 0, 0.01, saturated=True)
    for intervals in (119, 118, 118):
        assert {limiter.update(loaded) for _ in range(intervals)} == {500}
        assert limiter.update(loaded) == 350
        assert limiter.update(Sample(10, 0, 0.02, saturated=True)) == 500
        assert limiter.update(Sample(10, 0, 0.02, saturated=True)) == 500, "it is no slower than it was when measured"
        limiter.update(Sample(10, 0, 0.01, saturated=False))
