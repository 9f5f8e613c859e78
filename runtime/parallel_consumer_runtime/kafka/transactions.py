"""Exactly once: results, dead letters and offsets become visible together, in one transaction for each commit interval.

A cut ends a transaction: what is sent from then on waits, what was sent is acknowledged, and the offsets of what is
complete, their maps with them, go into the transaction, which is committed. What is asked of the client when, and what
its answers lead to, is `core/transaction.py`'s to say; here it is done.

Threads: `cut` is the event loop's; the blocking calls run in a thread of their own.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException

from parallel_consumer_runtime.core import Act, End, PartitionCommit, Refusal, Transaction
from parallel_consumer_runtime.core.map_bounds import METADATA_SIZE_MAX
from parallel_consumer_runtime.core.transaction import RETRIED_FOR_S
from parallel_consumer_runtime.errors import TemporaryError
from parallel_consumer_runtime.kafka.librdkafka import send_offsets
from parallel_consumer_runtime.kafka.positions import to_commit
from parallel_consumer_runtime.kafka.producer import ResultProducer

CALL_TIMEOUT_S = 10.0
CUT_TIMEOUT_S = 45.0
"""Longer than a cut may take: what is on its way, the offsets and the commit, each with their tries."""
INIT_TIMEOUT_S = 30.0
_PAUSE_S = 0.1
"""Between two tries: a client that is busy with the call of before refuses at once, and would be asked without end."""

_log = logging.getLogger(__name__)
_TOO_LARGE = "let spec.kafka.offsetMetadataMaxBytes be no more than their offset.metadata.max.bytes"


class TransactionalProducer(ResultProducer):
    """A ResultProducer whose records are part of transactions.

    Args:
        config: librdkafka properties, `transactional.id` among them.
        loop: the event loop.
        on_failure: told once, on the loop, when the producer cannot go on.
        metadata_max: characters that a map may take.
        told: topics whose ends are told.
    """

    def __init__(
        self,
        config: dict[str, Any],
        loop: asyncio.AbstractEventLoop,
        on_failure: Callable[[TemporaryError], None],
        metadata_max: int = METADATA_SIZE_MAX,
        *,
        told: Collection[str] = (),
    ) -> None:
        super().__init__(config, loop, on_failure, told=told, atomic=True)
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="kafka-transactions")
        self._turn = asyncio.Lock()
        self._metadata_max = metadata_max
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

    async def cut(self, transaction: Transaction, consumer: Callable[[], Consumer | None]) -> End:
        """End the transaction and begin the next. Cancelling the caller does not stop it.

        Args:
            transaction: which says how.
            consumer: returns the member's, None before it consumes and once it ends.

        Raises:
            TemporaryError: the producer was fenced, or cannot go on; the process must end.
        """
        return await asyncio.shield(asyncio.ensure_future(self._cut(transaction, consumer)))

    async def stop(self) -> None:
        """See ResultProducer. What is in an open transaction is gone."""
        await super().stop()
        self._executor.shutdown(wait=False, cancel_futures=True)

    async def _cut(self, transaction: Transaction, consumer: Callable[[], Consumer | None]) -> End:
        async with self._turn:
            began_s = time.monotonic()
            steps = transaction.cut()
            try:
                refusal: Refusal | None = None
                while True:
                    refusal = await self._perform(steps.send(refusal), transaction.planned, consumer)
            except StopIteration as stop:
                end: End = stop.value
            finally:
                held_s = time.monotonic() - began_s
                self.held_s += held_s
                self.longest_held_s = max(self.longest_held_s, held_s)
                self._produce_waiting()
            self.committed += end is End.COMMITTED
            if end is End.ABORTED:
                self.aborted += 1
                _log.warning("a transaction was aborted: %s", transaction.cause)
            return end

    async def _perform(
        self, act: Act, planned: Sequence[PartitionCommit], consumer: Callable[[], Consumer | None]
    ) -> Refusal | None:
        if act is Act.PAUSE:
            await asyncio.sleep(_PAUSE_S)
            return None
        if act is Act.FLUSH:
            await self._in_thread(self._producer.flush, RETRIED_FOR_S)
            await self._idle.wait()
            return None
        try:
            if act is Act.OFFSETS:
                # Without it the results would be there, and be produced again.
                if (known := consumer()) is None:
                    return Refusal("the consumer is gone")
                await self._in_thread(self._send_offsets, known, planned)
            elif act is Act.COMMIT:
                await self._in_thread(self._producer.commit_transaction, CALL_TIMEOUT_S)
                self.produced.commit()
            elif act is Act.ABORT:
                await self._in_thread(self._producer.abort_transaction, CALL_TIMEOUT_S)
                self.produced.abort()
            else:
                await self._in_thread(self._producer.begin_transaction)
        except KafkaException as error:
            told = error.args[0]
            if told.code() == KafkaError.OFFSET_METADATA_TOO_LARGE:
                # Cut, it would tell too little, and what it does not tell of would be produced again.
                words = f"the brokers refuse {self._metadata_max} characters of a commit's metadata; {_TOO_LARGE}"
                return Refusal(words, final=True)
            return Refusal(told.str(), again=told.retriable(), final=told.fatal())
        return None

    # In the thread of the transactions

    def _init(self) -> None:
        self._producer.init_transactions(INIT_TIMEOUT_S)
        self._producer.begin_transaction()

    def _send_offsets(self, consumer: Consumer, planned: Sequence[PartitionCommit]) -> None:
        positions = [to_commit(commit, self._metadata_max) for commit in planned]
        send_offsets(self._producer, consumer, positions, timeout_s=CALL_TIMEOUT_S)

    async def _in_thread(self, function: Callable[..., object], *arguments: Any) -> None:
        await self._loop.run_in_executor(self._executor, function, *arguments)
