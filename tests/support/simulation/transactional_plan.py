"""What a run looks like in which results and offsets are committed in transactions: a share of all seeds.

Drawn apart from the plan, so that a seed without transactions draws what it would draw if there were none.
"""

from tests.support.simulation.dice import Dice

SHARE = 0.16
SALT = 0x7A5
ALWAYS = {"owner": 40.0, "loop": 40.0, "transact": 60.0, "deliver": 25.0, "commit": 15.0, "coordinate": 9.0}
SELDOM = 0.4
"""Other faults are drawn so much less often: a transaction takes many steps."""
NEVER = ("recreate", "replace", "lose metadata", "garble metadata", "foreign metadata")
"""What takes the memory of what was done away from the broker: nobody can promise then that nothing is done twice."""
SOMETIMES = {"time out": 11.0, "strike": 42.0, "lose": 24.0}
RETURNED = {"done": 0.3, "results": 1.5}
CALLS = {"time out": 0.4, "apply, time out": 1.2, "apply late": 5.0, "refuse": 0.7}
"""What becomes of one call to the coordinator, beside "now"."""
FAULTS_KNOWN = 0.8


class TransactionalPlan:
    """Drawn once, at the start of a run.

    Args:
        dice: its own.
    """

    def __init__(self, dice: Dice) -> None:
        chance, pick = dice.chance, dice.pick
        self.retried_for_s = pick((0.0, 0.3, 2.0))
        self.lookup_timeout_s = pick((0.1, 0.1, 60.0))
        self.settle_timeout_s = pick((0.0, 0.0, 45.0))
        self.slowness = pick((0.0, 0.5, 0.8))
        """Share of a coordinator's chances to answer that it lets pass."""
        self.results_max = pick((1, 3, 4))
        """Records that a handler returns, at most."""
        self.client_room = pick((1, 1, 2, 4, 100))
        self.refused_by_client = 0.1 if chance(0.5) else 0.0
        self.undelivered = 0.05 if chance(0.5) else 0.0
        known = [name for name in CALLS if chance(FAULTS_KNOWN)]
        self.calls = [*known, "now"]
        self.call_weights: list[float] = []
        total = 0.0
        for name in known:
            total += CALLS[name]
            self.call_weights.append(total)
        self.call_weights.append(total + 1.0)


def drawn(seed: int) -> TransactionalPlan | None:
    """Return the plan of a seed's transactions; None when it has none."""
    dice = Dice(seed ^ (SALT << 32))
    return TransactionalPlan(dice) if dice.chance(SHARE) else None
