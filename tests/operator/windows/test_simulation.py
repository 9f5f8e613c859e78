"""Windows while operators die between any two calls, and others go on that were replaced; and proof that this finds bugs."""

from collections import Counter

import pytest

from tests.support.windows_simulation.planted import PLANTED, Planted, planted
from tests.support.windows_simulation.world import EXPECTED, BrokenError, World

SEEDS = 1500
PLANTED_SEEDS_MAX = 1000


def test_each_offset_is_in_exactly_one_window_whoever_dies() -> None:
    """No gap, no overlap, results in time, and everything ends in a window; and everything rare was seen."""
    counts: Counter[str] = Counter()
    for seed in range(SEEDS):
        counts += World(seed).run()
    assert not [what for what in EXPECTED if counts[what] < 10]


@pytest.mark.parametrize("bug", PLANTED, ids=lambda bug: bug.name)
def test_a_planted_bug_is_found(bug: Planted) -> None:
    """What is broken on purpose breaks a promise within a thousand seeds."""
    with planted(bug):
        assert any(_broken(seed) for seed in range(PLANTED_SEEDS_MAX))


def test_a_seed_is_the_same_run_again() -> None:
    """The same seed counts the same events."""
    assert World(7).run() == World(7).run()


def _broken(seed: int) -> bool:
    try:
        World(seed).run()
    except BrokenError:
        return True
    return False
