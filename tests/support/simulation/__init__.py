"""The real core between a fake broker, a fake clock and a fake executor: one seed, one run, no thread and no waiting.

`World` is one run: a safety phase of random steps under faults, then a liveness phase without them, in which everything
must become complete and committed. Which faults a seed knows, and how often, is itself drawn from the seed: swarm testing
(Groce et al., ISSTA 2012), because a fault that is always on hides the states that its absence leads to. The two phases
are TigerBeetle's.

`python -m tests.support.simulation` runs seeds, replays one, or shows that planted bugs are found.
"""

from tests.support.simulation.failure import Anomaly, Broken
from tests.support.simulation.world import World

__all__ = ["Anomaly", "Broken", "World"]
