"""How many records at once are worth it: between min and max, the knee of throughput against latency.

The gradient of Netflix's concurrency-limits (Gradient2Limit): while latency equals what an unloaded service shows, the
limit grows by its square root; when it rises in proportion to the limit, the service queues, and the limit falls to
where it did not. What an unloaded service shows is measured anew from time to time at a lower limit (as BBR does with
ProbeRTT), because a baseline that drifts by itself would let the limit creep. Failures push down by a fifth. A pure
function of samples.
"""

import math
from typing import NamedTuple

_SMOOTHING = 0.2
_FAILURE_RATIO_MAX = 0.1
_FAILURE_DECREASE = 0.8
_PROBE_EVERY = 120
_PROBE_SHARE = 0.7


class Sample(NamedTuple):
    """What one interval showed."""

    completed: int
    failed: int
    latency_s: float
    """Mean time of a handler call."""
    saturated: bool
    """Records waited although as many ran as the limit allowed. Without backlog nothing is learnt."""


class AdaptiveLimiter:
    """Moves a limit between two bounds.

    Args:
        minimum: where it starts and never below.
        maximum: never above.
    """

    __slots__ = ("_baseline_s", "_limit", "_probing", "_since_probe", "maximum", "minimum")

    def __init__(self, minimum: int, maximum: int) -> None:
        self.minimum = minimum
        self.maximum = maximum
        self._limit = float(minimum)
        self._baseline_s: float | None = None
        self._since_probe = 0
        self._probing = False

    @property
    def limit(self) -> int:
        """Records that may be in flight now."""
        share = _PROBE_SHARE if self._probing else 1.0
        return max(self.minimum, min(self.maximum, round(self._limit * share)))

    def bound(self, minimum: int, maximum: int) -> None:
        """Take new bounds; what was learnt stays."""
        self.minimum, self.maximum = minimum, maximum
        self._limit = min(max(self._limit, float(minimum)), float(maximum))

    def update(self, sample: Sample) -> int:
        """Learn from one interval and return the limit for the next."""
        calls = sample.completed + sample.failed
        if calls == 0:
            return self.limit
        if sample.failed > calls * _FAILURE_RATIO_MAX:
            self._limit = max(float(self.minimum), self._limit * _FAILURE_DECREASE)
            return self.limit
        baseline = self._baseline_s
        if baseline is None or sample.latency_s < baseline or self._probing:
            self._baseline_s = baseline = sample.latency_s
        if self._probing or not sample.saturated:
            self._probing = False
            return self.limit
        self._since_probe += 1
        if self._since_probe >= _PROBE_EVERY:
            self._since_probe = 0
            self._probing = True
            return self.limit
        gradient = max(0.5, min(1.0, baseline / sample.latency_s)) if sample.latency_s > 0 else 1.0
        target = self._limit * gradient + math.sqrt(self._limit)
        self._limit += (target - self._limit) * (_SMOOTHING if target < self._limit else 1.0)
        self._limit = min(max(self._limit, float(self.minimum)), float(self.maximum))
        return self.limit
