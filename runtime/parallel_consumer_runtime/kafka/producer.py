"""Results and dead letters: an idempotent producer whose acknowledgements cross to the event loop in batches."""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from parallel_consumer_runtime.core import Delivery, Group, Outbox, Partition, Undelivered
from parallel_consumer_runtime.errors import TemporaryError
from parallel_consumer_runtime.handlers import Result
from parallel_consumer_runtime.kafka.produced import ProducedEnds

POLL_TIMEOUT_S = 0.1
FLUSH_TIMEOUT_S = 10.0

_TOO_LARGE = {KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE}
NEVER_TOO_LARGE_BYTES = 16_384
"""A whole batch is refused for one record that is too large. A record of no more than this, or than one that its topic took
before, only shared the batch."""
_PERMANENT = {
    KafkaError.INVALID_RECORD,
    KafkaError.POLICY_VIOLATION,
    KafkaError._INVALID_ARG,  # noqa: SLF001 - librdkafka's local codes have this form
    KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001 - as above
}

_log = logging.getLogger(__name__)


class ResultProducer:
    """Produces from the event loop, is served by a thread of its own.

    Args:
        config: librdkafka properties.
        loop: the event loop on which `send` is called and deliveries are reported.
        on_failure: told once, on the loop, when the producer cannot go on.
        told: topics whose ends are told.
        atomic: what is produced is part of transactions.
    """

    def __init__(
        self,
        config: dict[str, Any],
        loop: asyncio.AbstractEventLoop,
        on_failure: Callable[[TemporaryError], None],
        *,
        told: Collection[str] = (),
        atomic: bool = False,
    ) -> None:
        self._producer = Producer({**config, "error_cb": self._on_error})
        self._loop = loop
        self._on_failure = on_failure
        self._thread = threading.Thread(target=self._serve, name="kafka-producer", daemon=True)
        self._stopping = threading.Event()
        self._stopped = asyncio.Event()
        # Filled by whichever thread serves the client, emptied by the loop.
        self._delivered: deque[tuple[Group, Undelivered | None]] = deque()
        self._scheduled = False
        self._atomic = atomic
        self.outbox = Outbox(atomic=atomic)
        self.produced = ProducedEnds(told, atomic=atomic)
        self._taken_bytes: dict[str, int] = {}
        """The size of the largest record that each topic took: the bound is a topic's, and dead letters may be larger than results."""
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def acknowledged(self) -> int:
        """Records that the broker acknowledged."""
        return self.outbox.acknowledged

    def start(self) -> None:
        """Begin to serve acknowledgements."""
        self._thread.start()

    def send(self, topic: str, results: Sequence[Result], delivery: Delivery, source: Partition | None = None) -> None:
        """Produce all of them; never blocks. Bounded by the engine: each belongs to a record that it buffers."""
        self.outbox.add(topic, results, delivery, source)
        if not self._scheduled:
            # Not now: every handler that has just ended makes room for another one first, which at low concurrency is
            # what the rate depends on. The broker can wait for as long as that takes.
            self._scheduled = True
            self._loop.call_soon(self._produce_scheduled)

    async def stop(self) -> None:
        """Wait for what is on its way, at most ten seconds, and end the thread. Twice is fine."""
        self._stopping.set()
        if self._thread.is_alive():
            await self._stopped.wait()

    def _produce(self, topic: str, result: Result, group: Group) -> bool:
        extra: dict[str, Any] = {}
        if result.partition is not None:
            extra["partition"] = result.partition
        if result.headers:
            extra["headers"] = list(result.headers)
        try:
            self._producer.produce(
                topic,
                result.value,
                result.key,
                on_delivery=partial(self._on_delivery, group, self.produced.of(topic)),
                **extra,
            )
        except BufferError:
            return False
        except KafkaException as error:
            # Refused by the client itself, so that it stands for no other record.
            permanent = error.args[0].code() in _PERMANENT | _TOO_LARGE
            refusal = Undelivered(error.args[0].str(), permanent)
            self._loop.call_soon(self._refused, group, refusal)
        self._idle.clear()
        return True

    def _serve(self) -> None:
        while not self._stopping.is_set():
            self._producer.poll(POLL_TIMEOUT_S)
            self._hand_over()
        self._producer.flush(FLUSH_TIMEOUT_S)
        self._hand_over()
        self._loop.call_soon_threadsafe(self._stopped.set)

    def _on_delivery(
        self, group: Group, ends: dict[int, int] | None, error: KafkaError | None, message: Message
    ) -> None:
        size_bytes = len(message.value() or b"") + len(message.key() or b"")
        topic = message.topic() or ""
        taken_bytes = self._taken_bytes.get(topic, NEVER_TOO_LARGE_BYTES)
        if error is None:
            if size_bytes > taken_bytes:
                self._taken_bytes[topic] = size_bytes
            # Before the loop hears of it: no commit can be acknowledged whose results are not told of. The offset is
            # negative when the broker took the record earlier, and does not remember where.
            if ends is not None and (offset := message.offset()) is not None and offset >= 0:
                partition = message.partition() or 0
                # Two threads serve a transaction's end, and may come here out of order. One comes in order, to a lower
                # offset where a topic was made anew.
                if not self._atomic or offset > ends.get(partition, -1):
                    ends[partition] = offset
            self._delivered.append((group, None))
        else:
            permanent = error.code() in _PERMANENT or (error.code() in _TOO_LARGE and size_bytes > taken_bytes)
            self._delivered.append((group, Undelivered(error.str(), permanent)))

    def _hand_over(self) -> None:
        if self._delivered:
            self._loop.call_soon_threadsafe(self._report)

    def _report(self) -> None:
        # No more than there were: what comes meanwhile has a report of its own.
        for _ in range(len(self._delivered)):
            self.outbox.report(*self._delivered.popleft())
        self._produce_waiting()

    def _refused(self, group: Group, refusal: Undelivered) -> None:
        self.outbox.report(group, refusal, refused=True)
        self._produce_waiting()

    def _produce_scheduled(self) -> None:
        self._scheduled = False
        self._produce_waiting()

    def _produce_waiting(self) -> None:
        self.outbox.pump(self._produce)
        if self.outbox.idle:
            self._idle.set()

    def _on_error(self, error: KafkaError) -> None:
        if error.fatal():
            failure = TemporaryError(f"the producer ended: {error.str()}")
            self._loop.call_soon_threadsafe(self._on_failure, failure)
        else:
            _log.debug("producer: %s", error)  # the client writes a line of its own, and not every time
