"""Results and dead letters: an idempotent producer whose acknowledgements cross to the event loop in batches."""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from parallel_consumer_runtime.errors import TemporaryError
from parallel_consumer_runtime.handlers import Result

POLL_TIMEOUT_S = 0.1
FLUSH_TIMEOUT_S = 10.0

_log = logging.getLogger(__name__)


class Delivery(Protocol):
    """What becomes of one group of produced records; called once, on the event loop's thread."""

    def __call__(self, error: str | None) -> None:
        """All were acknowledged, or the first error."""
        ...


class _Group:
    """Records that were produced together and are reported together."""

    __slots__ = ("delivery", "error", "remaining")

    def __init__(self, remaining: int, delivery: Delivery) -> None:
        self.remaining = remaining
        self.delivery = delivery
        self.error: str | None = None


class ResultProducer:
    """Produces from the event loop, is served by a thread of its own.

    Args:
        config: librdkafka properties.
        loop: the event loop on which `send` is called and deliveries are reported.
        on_failure: told once, on the loop, when the producer cannot go on.
    """

    def __init__(
        self,
        config: dict[str, Any],
        loop: asyncio.AbstractEventLoop,
        on_failure: Callable[[TemporaryError], None],
    ) -> None:
        self._producer = Producer({**config, "error_cb": self._on_error})
        self._loop = loop
        self._on_failure = on_failure
        self._thread = threading.Thread(target=self._serve, name="kafka-producer", daemon=True)
        self._stopping = threading.Event()
        self._stopped = asyncio.Event()
        self._delivered: list[tuple[_Group, str | None]] = []
        self._waiting: deque[tuple[str, Result, _Group]] = deque()
        self.acknowledged = 0
        """Records that the broker acknowledged."""

    def start(self) -> None:
        """Begin to serve acknowledgements."""
        self._thread.start()

    def send(self, topic: str, results: Sequence[Result], delivery: Delivery) -> None:
        """Produce all of them; never blocks. Bounded by the engine: each belongs to a record that it buffers."""
        group = _Group(len(results), delivery)
        for result in results:
            if self._waiting or not self._produce(topic, result, group):
                self._waiting.append((topic, result, group))

    async def stop(self) -> None:
        """Wait for what is on its way, at most ten seconds, and end the thread. Twice is fine."""
        self._stopping.set()
        if self._thread.is_alive():
            await self._stopped.wait()

    def _produce(self, topic: str, result: Result, group: _Group) -> bool:
        extra: dict[str, Any] = {}
        if result.partition is not None:
            extra["partition"] = result.partition
        if result.headers:
            extra["headers"] = list(result.headers)
        try:
            self._producer.produce(
                topic, result.value, result.key, on_delivery=partial(self._on_delivery, group), **extra
            )
        except BufferError:
            return False
        except KafkaException as error:
            self._loop.call_soon(self._report, [(group, error.args[0].str())])
        return True

    def _serve(self) -> None:
        while not self._stopping.is_set():
            self._producer.poll(POLL_TIMEOUT_S)
            self._hand_over()
        self._producer.flush(FLUSH_TIMEOUT_S)
        self._hand_over()
        self._loop.call_soon_threadsafe(self._stopped.set)

    def _on_delivery(self, group: _Group, error: KafkaError | None, _message: Message) -> None:
        self._delivered.append((group, None if error is None else error.str()))

    def _hand_over(self) -> None:
        if self._delivered:
            delivered, self._delivered = self._delivered, []
            self._loop.call_soon_threadsafe(self._report, delivered)

    def _report(self, delivered: list[tuple[_Group, str | None]]) -> None:
        for group, error in delivered:
            group.remaining -= 1
            if error is None:
                self.acknowledged += 1
            else:
                group.error = group.error or error
            if group.remaining == 0:
                group.delivery(group.error)
        while self._waiting:
            topic, result, group = self._waiting[0]
            if not self._produce(topic, result, group):
                return
            self._waiting.popleft()

    def _on_error(self, error: KafkaError) -> None:
        if error.fatal():
            failure = TemporaryError(f"the producer ended: {error.str()}")
            self._loop.call_soon_threadsafe(self._on_failure, failure)
        else:
            _log.info("producer: %s", error)
