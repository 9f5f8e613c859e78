"""What one seed's run looks like: sizes, bounds, and which faults it knows, each with its own weight."""

import sys

from parallel_consumer_runtime.core import BatchShape, Bounds, PartitionKey, RetryPolicy
from parallel_consumer_runtime.core.map_bounds import METADATA_SIZE_MAX, MapBounds, map_bounds
from tests.support.simulation import transactional_plan as transactions
from tests.support.simulation.dice import Dice

ALWAYS = {
    "owner": 30.0,
    "loop": 30.0,
    "handle": 30.0,
    "produce": 9.0,
    "deliver": 6.0,
    "network": 4.0,
    "commit": 10.0,
    "flow": 3.0,
    "coordinate": 4.0,
    "clock": 3.0,
}
SOMETIMES = {
    "mark": 2.0,
    "compact": 5.0,
    "retain": 0.7,
    "recreate": 4.5,
    "replace": 0.5,
    "lose metadata": 0.7,
    "garble metadata": 0.7,
    "foreign metadata": 1.3,
    "join": 0.7,
    "terminate": 0.6,
    "kill": 0.6,
    "restart": 0.6,
    "freeze": 0.8,
    "wake": 1.2,
    "block": 1.5,
    "expire": 1.0,
    "rebalance": 2.7,
    "limit": 0.8,
    "halt": 0.6,
    "bounds": 0.6,
    "gates": 0.8,
}
DEAF = {"block": 4.0, "expire": 4.0}
"""A member that loses its partitions and gets them back before its event loop has heard of it."""
OUTCOMES = {
    "results": 0.25,
    "raise": 0.2,
    "retry": 0.12,
    "skip": 0.08,
    "dead": 0.08,
    "never called": 0.06,
}
FATES = {"fail": 0.2, "unknown": 0.4, "apply late": 0.3, "acknowledge late": 7.0}
STEPS = 300
PARTITIONS_MAX = 4


class Plan:
    """Drawn once, at the start of a run.

    Args:
        dice: the run's.
        steps: of the safety phase.
        transactional: results and offsets are committed together.
    """

    def __init__(self, dice: Dice, steps: int = STEPS, *, transactional: bool = False) -> None:
        chance, below, pick = dice.chance, dice.below, dice.pick
        self.ordering = pick(("Key", "Key", "Partition", "Unordered"))
        topics = 1 + below(2)
        self.partitions = [PartitionKey(f"t{below(topics)}", number) for number in range(1 + below(3))]
        if chance(0.3):
            self.partitions.append(PartitionKey("t9", 0))
        names: list[bytes | None] = [b"k%d" % number for number in range(pick((1, 2, 4, 8, 40)))]
        self.keys = [*names, None] if chance(0.3) else names
        self.spread = chance(0.2)
        """A key may stand in any partition, as with a partitioner of the user's own."""
        self.eager = chance(0.4)
        self.members = 1 + below(3)
        self.limit = pick((1, 2, 4, 8, 16))
        self.batch_max = pick((2, 4, 8))
        self.bounds = Bounds(pick((2, 4, 8, 40)), pick((6, 12, 100)), pick((40, 1000)))
        self.small_map = chance(0.75)
        gaps, span = pick((0, 0, 1, 2)), pick((1, 2, 4, 9))
        self.maps = MapBounds(gaps, span) if self.small_map else map_bounds()
        self.metadata_max = pick((8, 8, 12)) if chance(0.5) else METADATA_SIZE_MAX
        self.holes = 0.02
        """Share of records that are followed by a long hole."""
        self.drain_timeout_s = pick((0.2, 1.0, 4.0))
        self.policy = RetryPolicy(pick((0, 1, 3)), 0.05, 2.0)
        self.dead_letters = chance(0.6)
        self.shape: BatchShape | None = None
        if chance(0.35):
            size = 2 + below(3)
            self.shape = BatchShape(size, 1 + below(size), pick((0.0, 0.3)), same_key=chance(0.7))
        self.ignored = self.keys[0] if chance(0.3) else None
        self.scheduled = chance(0.2)
        self.slow = pick((0.02, 0.1, 0.3)) if chance(0.4) else 0.0
        """Share of calls that do not end before the safety phase does."""
        character = dice.random()
        if character < 0.52:
            self._crowd()
            self.spread = chance(0.6)
        elif character < 0.97:
            self._spread_out()
        self.undelivered = pick((0.1, 0.5)) if chance(0.4) else 0.0
        self.lookup_failures = 0.7 if chance(0.6) else 0.0
        self.outcomes, self.outcome_weights = _swarm(dice, {"done": 1.0}, OUTCOMES, 0.6)
        self.fates, self.fate_weights = _swarm(dice, {"now": 1.0}, FATES, 0.6)
        self.steps = self._steps(dice, steps, transactional=transactional)

    def _steps(self, dice: Dice, count: int, *, transactional: bool) -> list[str]:
        """Return what happens, step by step."""
        always = ALWAYS
        if dice.chance(0.12):
            always, self.members = {**ALWAYS, **DEAF}, 1
        sometimes = SOMETIMES
        if transactional:
            self.metadata_max, self.members = METADATA_SIZE_MAX, 1 + dice.below(2)
            # As `fitting_bounds` are, for short logs.
            self.maps = MapBounds(0, sys.maxsize, dice.pick((3, 6, 12, 10_000)))
            self.outcomes, self.outcome_weights = _swarm(dice, transactions.RETURNED, OUTCOMES, 0.4)
            always = always | transactions.ALWAYS
            sometimes = {
                kind: weight * transactions.SELDOM
                for kind, weight in SOMETIMES.items()
                if kind not in transactions.NEVER
            }
            sometimes |= transactions.SOMETIMES
        kinds, weights = _swarm(dice, always, sometimes, 0.45)
        return dice.source.choices(kinds, cum_weights=weights, k=count)

    def _crowd(self) -> None:
        """Many records of few keys at once over a small map: where tasks are parked, and maps are cut."""
        self.ordering, self.small_map, self.keys = "Key", True, [b"k%d" % number for number in range(5)]
        self.limit, self.batch_max, self.bounds = 16, 8, Bounds(40, 100, 1000)
        self.maps = MapBounds(0, 3)

    def _spread_out(self) -> None:
        """Long maps that the broker does not take."""
        self.ordering, self.small_map, self.metadata_max = "Unordered", False, 8
        self.maps = map_bounds()
        self.limit, self.batch_max, self.bounds = 16, 8, Bounds(40, 100, 1000)
        self.slow, self.holes = 0.2, 0.15
        self.spread, self.keys, self.members = True, [b"k%d" % number for number in range(8)], 1
        for number in range(PARTITIONS_MAX - len(self.partitions)):
            self.partitions.append(PartitionKey("t8", number))


def _swarm(
    dice: Dice, always: dict[str, float], sometimes: dict[str, float], share: float
) -> tuple[list[str], list[float]]:
    """Return names and summed weights: all that are always there, and a share of the others, each weighted anew."""
    kinds, weights, total = list[str](), list[float](), 0.0
    for name, weight in always.items():
        total += weight * (0.3 + dice.random())
        kinds.append(name)
        weights.append(total)
    for name, weight in sometimes.items():
        if dice.chance(share):
            total += weight * (0.5 + 2.0 * dice.random())
            kinds.append(name)
            weights.append(total)
    return kinds, weights
