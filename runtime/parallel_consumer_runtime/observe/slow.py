"""Reports calls that run long: once each, in the log and in a counter."""

import logging
from collections.abc import Iterable

from parallel_consumer_runtime.observe.snapshot import hash_of
from parallel_consumer_runtime.outcomes import Counters
from parallel_consumer_runtime.workers.contract import Call, tasks_of

_log = logging.getLogger(__name__)
_LOGGED_AT_ONCE = 5


class SlowWatch:
    """Looks at what runs, now and then. On the event loop's thread.

    Args:
        counters: where slow calls are counted.
    """

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._reported: set[Call] = set()

    @property
    def remembered(self) -> int:
        """How many calls were reported and still run."""
        return len(self._reported)

    def look(self, running: Iterable[Call], slow_after_s: float, now: float) -> None:
        """Report what runs longer than so many seconds and was not reported before.

        Args:
            running: calls that have not ended, the oldest first.
            slow_after_s: seconds.
            now: monotonic seconds.
        """
        slow: set[Call] = set()
        logged = 0
        for call in running:
            age_s = now - call.started_at
            if age_s < slow_after_s:
                break
            slow.add(call)
            if call in self._reported:
                continue
            self._counters.slow += 1
            logged += 1
            if logged <= _LOGGED_AT_ONCE:
                record = tasks_of(call)[0].record
                _log.warning(
                    "%s[%d]@%d runs for %.1f s by now, attempt %d, key hash %s: nothing above it can be committed for good",
                    record.topic,
                    record.partition,
                    record.offset,
                    age_s,
                    call.attempt,
                    hash_of(record.key),
                )
        if logged > _LOGGED_AT_ONCE:
            _log.warning("%d more calls run for long", logged - _LOGGED_AT_ONCE)
        self._reported = slow
