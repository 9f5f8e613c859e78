"""Watches a group's committed offsets at the broker and writes them to the history, with the generation."""

import threading
import time
from typing import Self

from confluent_kafka import KafkaException

from tests.support.history import Committed, HistoryWriter, Position
from tests.support.kafka_view import KafkaView
from tests.support.waiting import ConditionTimeoutError

INTERVAL_S = 0.1
STOP_TIMEOUT_S = 60.0


class CommitWatch:
    """A thread that samples from enter to exit. Its failure is raised on exit.

    Args:
        bootstrap: the broker.
        group: whose commits.
        topic: of which topic.
        history: where changes are written, after they were seen.
        outages: a broker that does not answer is waited for; otherwise it is a failure.
    """

    def __init__(
        self, bootstrap: str, group: str, topic: str, history: HistoryWriter, *, outages: bool = False
    ) -> None:
        self._view = KafkaView(bootstrap)
        self._group = group
        self._topic = topic
        self._history = history
        self._outages = outages
        self._stop = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="commit-watch", daemon=True)
        self.committed: dict[int, int] = {}
        """The newest sample; replaced as a whole."""
        self.missed = 0
        """Samples that the broker did not answer."""
        self.slowest_s = 0.0
        """The longest that the coordinator took to answer: what this machine adds to a commit's latency at its worst."""

    @property
    def total(self) -> int:
        """Sum of the committed offsets: records that the group is past, in a topic that begins at 0."""
        return sum(self.committed.values())

    def _run(self) -> None:
        try:
            while not self._stop.wait(INTERVAL_S):
                try:
                    self._sample()
                except (KafkaException, ConditionTimeoutError, TimeoutError):
                    if not self._outages:
                        raise
                    self.missed += 1
            self._sample()
        except BaseException as error:  # noqa: BLE001 - raised again on exit, in the test's thread
            self._failure = error

    def _sample(self) -> None:
        before = self._view.group(self._group).generation
        asked_at = time.monotonic()
        seen = {p: one.offset for p, one in self._view.committed(self._group, self._topic).items()}
        if self.committed:  # the first questions also find the coordinator
            self.slowest_s = max(self.slowest_s, time.monotonic() - asked_at)
        after = self._view.group(self._group).generation
        # A sample taken while the generation changed belongs to neither.
        if after is None or before != after:
            return
        now = time.monotonic_ns()
        changed = ((p, offset) for p, offset in seen.items() if self.committed.get(p) != offset)
        self._history.write_all(Committed(Position(self._topic, p, offset), after, now) for p, offset in changed)
        self.committed = seen

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(STOP_TIMEOUT_S)
        self._view.close()
        if self._failure is not None:
            raise self._failure
