"""Commits of one consumer: one asynchronous commit in flight, synchronous ones at the end of an assignment. Owner thread."""

import logging
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from parallel_consumer_runtime.core import PartitionCommit
from parallel_consumer_runtime.kafka.final_errors import raise_if_final
from parallel_consumer_runtime.kafka.librdkafka import commit_async, commit_sync
from parallel_consumer_runtime.kafka.positions import to_commit

_METADATA_MIN = 64
_POLL_TIMEOUT_S = 0.05
_PASSING = {
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.OFFSET_METADATA_TOO_LARGE,
    KafkaError._TIMED_OUT,  # noqa: SLF001 - librdkafka's local codes have this form
    KafkaError._WAIT_COORD,  # noqa: SLF001 - as above
}
"""What another try may mend. A broker reads a member's next request only when its JoinGroup is answered, so a commit that was
sent meanwhile comes when its generation is over; and a map that is too large is half as large the next time."""

_log = logging.getLogger(__name__)


class Told(Protocol):
    """Who hears what became of commits."""

    def __call__(self, commits: Sequence[PartitionCommit], error: str | None) -> None:
        """They were acknowledged, or failed with an error."""
        ...


class Committer:
    """Writes commits, their maps cut to what the broker takes.

    Args:
        told: hears what became of each.
        ours: whether a commit's assignment is the present one of its partition, and its log still is.
        instance: the member's group.instance.id, for messages.
        metadata_max: characters that a map may take.
    """

    def __init__(self, told: Told, ours: Callable[[PartitionCommit], bool], instance: str, metadata_max: int) -> None:
        self._told = told
        self._ours = ours
        self._instance = instance
        self._in_flight: list[PartitionCommit] | None = None
        self._error: KafkaError | None = None
        """Of the last commit that failed."""
        self._metadata_max = metadata_max

    @property
    def in_flight(self) -> bool:
        """Whether an asynchronous commit is on its way."""
        return self._in_flight is not None

    def send(self, consumer: Consumer, commits: list[PartitionCommit]) -> None:
        """Commit asynchronously; `on_commit` hears of it. One at a time: the caller waits for it."""
        if not (current := self._current(commits)):
            return
        self._in_flight = commits
        try:
            commit_async(consumer, [to_commit(commit, self._metadata_max) for commit in current])
        except KafkaException as error:
            self._in_flight = None
            self._failed(commits, error.args[0])

    def send_and_wait(self, consumer: Consumer, commits: list[PartitionCommit]) -> None:
        """Commit, and return when it is acknowledged or failed."""
        if not (current := self._current(commits)):
            return
        try:
            commit_sync(consumer, [to_commit(commit, self._metadata_max) for commit in current])
        except KafkaException as error:
            self._failed(commits, error.args[0])
        else:
            self._told(commits, None)

    def send_last(self, consumer: Consumer, commits: list[PartitionCommit]) -> None:
        """Commit for partitions that are being given up: there is no other try, whatever becomes of it."""
        if not commits or not (current := self._current(commits)):
            return
        try:
            commit_sync(consumer, [to_commit(commit, self._metadata_max) for commit in current])
        except KafkaException as error:
            self._give_up(commits, error.args[0].str())
        else:
            self._told(commits, None)

    def finish(self, consumer: Consumer, commits: list[PartitionCommit], timeout_s: float) -> None:
        """Commit for the last time, again and again while the group changes. Polls meanwhile, and drops what that brings.

        A synchronous commit would wait for an answer that may come only when the rebalance goes on, and it goes on by polling.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            self._await_answer(consumer, deadline)
            self._error = None
            if not commits or not any(map(self._ours, commits)):
                return
            self.send(consumer, commits)
            self._await_answer(consumer, deadline)
            if self._in_flight is not None:
                self._give_up(commits, "nobody answers")
                return
            if self._error is None:
                return
            if self._error.code() not in _PASSING or time.monotonic() >= deadline:
                self._give_up(commits, self._error.str())
                return

    def _await_answer(self, consumer: Consumer, deadline: float) -> None:
        while self._in_flight is not None and time.monotonic() < deadline:
            consumer.poll(_POLL_TIMEOUT_S)

    def _give_up(self, commits: list[PartitionCommit], words: str) -> None:
        _log.warning("the last commit failed (%s): its records may be handled again", words)
        self._told(commits, words)

    def on_commit(self, error: KafkaError | None, partitions: list[TopicPartition]) -> bool:
        """Take the client's callback. Return whether the brokers answered well."""
        commits, self._in_flight = self._in_flight, None
        if commits is None:
            return False
        failed = error or next((p.error for p in partitions if p.error is not None), None)
        if failed is not None:
            self._failed(commits, failed)
            return False
        self._told(commits, None)
        return True

    def _current(self, commits: list[PartitionCommit]) -> list[PartitionCommit]:
        # The loop may have planned before it heard that a partition was given up: sent now, its commit would take back
        # what the next owner has committed.
        current = [commit for commit in commits if self._ours(commit)]
        if not current:
            self._told(commits, "revoked meanwhile")
        return current

    def _failed(self, commits: list[PartitionCommit], error: KafkaError) -> None:
        self._error = error
        if error.code() == KafkaError.OFFSET_METADATA_TOO_LARGE:
            self._metadata_max = max(_METADATA_MIN, self._metadata_max // 2)
            _log.warning("the broker's offset.metadata.max.bytes is smaller: maps are cut to %d", self._metadata_max)
        self._told(commits, error.str())
        raise_if_final(error, self._instance)
