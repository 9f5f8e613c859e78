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
