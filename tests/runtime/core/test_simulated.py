"""What the simulation found, each as small as it can be told."""

from parallel_consumer_runtime.core import Ledger


def test_a_map_that_says_everything_is_complete_is_committed_away() -> None:
    """A map without a gap means a higher offset than the one it was committed at: that is news for the broker."""
    ledger = Ledger(base=4, highest=25)
    assert ledger.committable == 26
    assert ledger.dirty
