"""Watches a group's committed offsets at the broker and writes them to the history, with the generation."""

import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Self

from tests.support.history import Committed, HistoryWriter, Position
from tests.support.kafka_view import KafkaView

INTERVAL_S = 0.1
STOP_TIMEOUT_S = 60.0


class CommitWatch:
    """A thread that samples from enter to exit. Its failure is raised on exit.

    Args:
        bootstrap: the broker.
        group: whose commits.
        topic: of which topic.
        history: where changes are written, after they were seen.
    """

    def __init__(self, bootstrap: str, group: str, topic: str, history: HistoryWriter) -> None:
        self._bootstrap = bootstrap
        self._view = KafkaView(bootstrap)
        self._looking = threading.Lock()
        self._group = group
        self._topic = topic
        self._history = history
        self._stop = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="commit-watch", daemon=True)
        self.committed: dict[int, int] = {}
        """The newest sample; replaced as a whole."""
        self.slowest_s = 0.0
        """The longest that the coordinator took to answer: what this machine adds to a commit's latency at its worst."""

    @property
    def total(self) -> int:
        """Sum of the committed offsets: records that the group is past, in a topic that begins at 0."""
        return sum(self.committed.values())

    def _run(self) -> None:
        try:
            while not self._stop.wait(INTERVAL_S):
                self._sample()
            self._sample()
        except BaseException as error:  # noqa: BLE001 - raised again on exit, in the test's thread
            self._failure = error

    @contextmanager
    def away(self) -> Generator[None]:
        """Look away while the broker is down: librdkafka's admin client does not survive that with a question open."""
        with self._looking:
            self._view.close()
            yield
            self._view = KafkaView(self._bootstrap)

    def _sample(self) -> None:
        with self._looking:
            self._look()

    def _look(self) -> None:
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
