"""Exactly once: results, dead letters and offsets become visible together, in one transaction for each commit interval.

A cut ends a transaction: what is sent from then on waits, what was sent is acknowledged, and the offsets of what is
complete, their maps with them, go into the transaction, which is committed. So a record's results and its completion are in
one transaction or in none. When anything of it fails, the transaction is aborted, and everything since the last one counts as
never done: the caller rewinds to the committed offsets.

Threads: `send`, `cut` and `spoil` are the event loop's; the blocking calls run in a thread of their own.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message

from parallel_consumer_runtime.core import PartitionCommit
from parallel_consumer_runtime.errors import TemporaryError
from parallel_consumer_runtime.kafka.librdkafka import send_offsets
from parallel_consumer_runtime.kafka.positions import to_commit
from parallel_consumer_runtime.kafka.producer import ResultProducer
from parallel_consumer_runtime.results import Undelivered

CALL_TIMEOUT_S = 10.0
RETRIED_FOR_S = 20.0
CUT_TIMEOUT_S = 45.0
"""Longer than a cut may take: what is on its way, the offsets and the commit, each with their tries."""
INIT_TIMEOUT_S = 30.0

_log = logging.getLogger(__name__)


class AbortedError(Exception):
    """The transaction was aborted: everything since the last one is to be done again."""


class _SpoiledError(Exception):
    """What was sent is not ours to say any more."""


class TransactionalProducer(ResultProducer):
    """A ResultProducer whose records are part of transactions.

    Args:
        config: librdkafka properties, `transactional.id` among them.
        loop: the event loop.
        on_failure: told once, on the loop, when the producer cannot go on.
        rewind: called when a transaction was aborted, before anything can be sent again: makes everything since the last
            one undone.
    """

    def __init__(
        self,
        config: dict[str, Any],
        loop: asyncio.AbstractEventLoop,
        on_failure: Callable[[TemporaryError], None],
        rewind: Callable[[], None],
    ) -> None:
        super().__init__(config, loop, on_failure)
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="kafka-transactions")
        self._rewind = rewind
        self._turn = asyncio.Lock()
        self._spoiled = False
        self._used = False
        """Something was sent in the open transaction."""
        self._failed: KafkaError | None = None
        """Something of the open transaction was not delivered; set by whichever thread serves the client."""
        self.committed = self.aborted = 0
        """Transactions since the start."""
        self.held_s = 0.0
        """Time for which cuts let results wait, summed up, seconds."""
        self.longest_held_s = 0.0

    async def begin(self) -> None:
        """Fence whoever had this transactional id before, and open the first transaction.

        Raises:
            TemporaryError: the coordinator does not answer.
        """
        try:
            await self._in_thread(self._init)
        except KafkaException as error:
            msg = f"transactions could not be begun: {error.args[0].str()}"
            raise TemporaryError(msg) from error

    def spoil(self) -> None:
        """The open transaction holds what others will do again: the next cut aborts it."""
        self._spoiled = True

    async def cut(
        self, consumer: Consumer | None, plan: Callable[[], Sequence[PartitionCommit]]
    ) -> Sequence[PartitionCommit]:
        """End the transaction and begin the next. Return what it committed. Cancelling the caller does not stop it.

        Args:
            consumer: the member's; None before it consumes.
            plan: called when all that was sent is acknowledged; what is complete by then.

        Raises:
            AbortedError: nothing of it happened.
            TemporaryError: the producer was fenced, or cannot go on; the process must end.
        """
        return await asyncio.shield(asyncio.ensure_future(self._cut(consumer, plan)))

    async def stop(self) -> None:
        """See ResultProducer. What is in an open transaction is gone."""
        await super().stop()
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _produce(self, topic: str, result: Any, group: Any) -> bool:
        self._used = True
        return super()._produce(topic, result, group)

    def _on_delivery(self, group: Any, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failed = error
        super()._on_delivery(group, error, message)

    async def _cut(
        self, consumer: Consumer | None, plan: Callable[[], Sequence[PartitionCommit]]
    ) -> Sequence[PartitionCommit]:
        async with self._turn:
            began_s = time.monotonic()
            self._holding = True
            try:
                return await self._end_transaction(consumer, plan)
            except KafkaException as error:
                await self._abort(error.args[0])
                raise AbortedError from error
            except _SpoiledError:
                await self._abort(None)
                raise AbortedError from None
            finally:
                self._holding = False
                held_s = time.monotonic() - began_s
                self.held_s += held_s
                self.longest_held_s = max(self.longest_held_s, held_s)
                self._produce_waiting()

    async def _end_transaction(
        self, consumer: Consumer | None, plan: Callable[[], Sequence[PartitionCommit]]
    ) -> Sequence[PartitionCommit]:
        if self.outstanding:
            await self._in_thread(self._producer.flush, RETRIED_FOR_S)
            await self.idle.wait()
        if self._failed is not None:
            raise KafkaException(self._failed)
        if self._spoiled:
            raise _SpoiledError
        commits = plan()
        if commits or self._used:
            await self._in_thread(self._commit, consumer, commits)
            self._used = False
            self.committed += 1
        return commits

    async def _abort(self, cause: KafkaError | None) -> None:
        if cause is not None and cause.fatal():
            msg = f"the transactional producer ended: {cause.str()}"
            raise TemporaryError(msg)
        _log.warning("a transaction is aborted: %s", "partitions were lost" if cause is None else cause.str())
        try:
            await self._in_thread(self._abort_and_begin)
        except KafkaException as error:
            msg = f"a transaction could not be aborted: {error.args[0].str()}"
            raise TemporaryError(msg) from error
        # What was purged is reported before anything new is sent, or it would count against the next transaction.
        await self.idle.wait()
        # Before anything is sent again, and in one go: a result that a task of before sent now would be in the next
        # transaction, and its record's next result as well.
        self._rewind()
        waiting, self._waiting = self._waiting, deque()
        for _, _, group in waiting:
            group.remaining -= 1
            if group.remaining == 0:
                group.delivery(Undelivered("the transaction was aborted", permanent=False))
        self._failed = None
        self._spoiled = self._used = False
        self.aborted += 1

    # In the thread of the transactions

    def _init(self) -> None:
        self._producer.init_transactions(INIT_TIMEOUT_S)
        self._producer.begin_transaction()

    def _commit(self, consumer: Consumer | None, commits: Sequence[PartitionCommit]) -> None:
        if consumer is not None and commits:
            positions = [to_commit(commit) for commit in commits]
            _retried(lambda: send_offsets(self._producer, consumer, positions, timeout_s=CALL_TIMEOUT_S))
        _retried(lambda: self._producer.commit_transaction(CALL_TIMEOUT_S))
        self._producer.begin_transaction()

    def _abort_and_begin(self) -> None:
        _retried(lambda: self._producer.abort_transaction(CALL_TIMEOUT_S))
        self._producer.begin_transaction()

    async def _in_thread(self, function: Callable[..., object], *arguments: Any) -> None:
        await self._loop.run_in_executor(self._executor, function, *arguments)


def _retried(call: Callable[[], None]) -> None:
    """Call again while the client says that another try may succeed, until the transaction's own time is over."""
    deadline = time.monotonic() + RETRIED_FOR_S
    while True:
        try:
            call()
        except KafkaException as error:
            if not error.args[0].retriable() or time.monotonic() >= deadline:
                raise
        else:
            return
