"""librdkafka's log lines, a few of each kind: a client that finds no broker tries, and would say so, twenty times a second."""

import logging
import threading
import time
from collections.abc import Callable

LINES_PER_PERIOD = 3
PERIOD_S = 10.0
KINDS_MAX = 100
"""librdkafka has a few dozen; beyond that the one that was counted first is forgotten."""


class LineLimit(logging.Filter):
    """Lets a few lines of each kind (librdkafka's first word, such as FAIL) through per period, and counts the rest.

    Any thread; keeps one counter per kind.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._lock = threading.Lock()
        self._seen: dict[str, tuple[float, int]] = {}

    @property
    def kinds(self) -> int:
        """How many kinds are counted."""
        return len(self._seen)

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the line is written; the first of a period says how many were not."""
        kind = record.getMessage().split(" ", 1)[0]
        now = self._clock()
        with self._lock:
            began, count = self._seen.get(kind, (now, 0))
            hidden = 0
            if now - began >= PERIOD_S:
                began, count, hidden = now, 0, max(0, count - LINES_PER_PERIOD)
            if kind not in self._seen and len(self._seen) >= KINDS_MAX:
                del self._seen[next(iter(self._seen))]
            self._seen[kind] = began, count + 1
        if hidden:
            record.msg, record.args = f"{record.getMessage()} ({hidden} more such lines were left out)", None
        return count < LINES_PER_PERIOD


def client_logger(role: str) -> logging.Logger:
    """Return the logger of a client, such as `librdkafka.consumer`, with one limit."""
    logger = logging.getLogger(f"librdkafka.{role}")
    if not any(isinstance(one, LineLimit) for one in logger.filters):
        logger.addFilter(LineLimit())
    return logger
