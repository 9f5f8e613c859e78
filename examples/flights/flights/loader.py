"""Produces the flights, in time order, keyed by aircraft; no faster than the group that reads them can follow.

`python -m flights.loader --bootstrap HOST:PORT [--group flights]`. An embedded broker keeps about 5 MB of a partition
and drops the oldest beyond that without a word, so with `--group` the loader stays four megabytes ahead of that group's
commits at most. Not fewer: a commit waits for the busiest aircraft of its stretch of time, whose flights are handled one
after the other, and the longer the stretch the less it matters who that is.
"""

import argparse
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence

import orjson
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from flights import data

TOPIC = "flights"
PARTITIONS = 4
AHEAD_MAX_BYTES = 4_000_000
RECORD_OVERHEAD_BYTES = 40
"""What a record costs the broker beside its key and value, about."""
CHECK_EVERY = 500
_STALL_S = 120.0


def encode(flight: data.Flight) -> tuple[bytes | None, bytes]:
    """Return key and value."""
    value = orjson.dumps(
        {
            "id": flight.id,
            "flight": f"{flight.carrier}{flight.number}",
            "route": f"{flight.origin}-{flight.destination}",
            "scheduled": flight.scheduled_min,
            "departure_delay": flight.departure_delay_min,
            "arrival_delay": flight.arrival_delay_min,
            "air_time": flight.air_time_min,
        }
    )
    return (None if flight.tail is None else flight.tail.encode()), value


class Ahead:
    """How many bytes of each partition were produced and not committed yet."""

    def __init__(self) -> None:
        self._waiting: list[deque[tuple[int, int]]] = [deque() for _ in range(PARTITIONS)]
        self.size_bytes = [0] * PARTITIONS

    def produced(self, partition: int, offset: int, size_bytes: int) -> None:
        """Note one acknowledged record."""
        self._waiting[partition].append((offset, size_bytes))
        self.size_bytes[partition] += size_bytes

    def committed(self, partition: int, offset: int) -> None:
        """Note the group's commit: everything below it is done with."""
        waiting = self._waiting[partition]
        while waiting and waiting[0][0] < offset:
            self.size_bytes[partition] -= waiting.popleft()[1]

    @property
    def worst_bytes(self) -> int:
        """The partition that is furthest ahead."""
        return max(self.size_bytes)


class Loader:
    """Produces a list of flights.

    Args:
        bootstrap: the brokers.
        group: whose commits pace it; None goes as fast as the brokers take them.
    """

    def __init__(self, bootstrap: str, group: str | None) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "partitioner": "murmur2_random",
                "enable.idempotence": True,
                "linger.ms": 20,
                "log_level": 3,
            }
        )
        self._group = (
            None if group is None else Consumer({"bootstrap.servers": bootstrap, "group.id": group, "log_level": 3})
        )
        self._ahead = Ahead()
        self._failed: KafkaError | None = None
        self.produced = 0
        """Flights handed to the producer."""

    def load(self, flights: Sequence[data.Flight], stopped: Callable[[], bool] = lambda: False) -> None:
        """Produce all flights and wait for their acknowledgements.

        Raises:
            KafkaException: a record was not acknowledged.
            TimeoutError: the group made no progress for two minutes.
        """
        for flight in flights:
            if self.produced % CHECK_EVERY == 0:
                self._wait_for_group(stopped)
                if stopped():
                    break
            key, value = encode(flight)
            self._produce(key, value)
            self.produced += 1
        self._producer.flush(60)
        self._check()
        if self._group is not None:
            self._group.close()

    def _produce(self, key: bytes | None, value: bytes) -> None:
        while True:
            try:
                self._producer.produce(TOPIC, value, key, on_delivery=self._delivered)
            except BufferError:
                self._producer.poll(0.1)
            else:
                return

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failed = error
            return
        size_bytes = len(message.value() or b"") + len(message.key() or b"") + RECORD_OVERHEAD_BYTES
        self._ahead.produced(message.partition() or 0, message.offset() or 0, size_bytes)

    def _wait_for_group(self, stopped: Callable[[], bool]) -> None:
        self._producer.poll(0)
        self._check()
        if self._group is None or self._ahead.worst_bytes < AHEAD_MAX_BYTES:
            return
        deadline, seen = time.monotonic() + _STALL_S, self._ahead.worst_bytes
        while self._ahead.worst_bytes >= AHEAD_MAX_BYTES and not stopped():
            self._producer.poll(0.2)
            for found in self._group.committed([TopicPartition(TOPIC, p) for p in range(PARTITIONS)], timeout=10):
                self._ahead.committed(found.partition, found.offset)
            if self._ahead.worst_bytes < seen:
                deadline, seen = time.monotonic() + _STALL_S, self._ahead.worst_bytes
            if time.monotonic() > deadline:
                msg = f"the group made no progress for {_STALL_S:g} s"
                raise TimeoutError(msg)

    def _check(self) -> None:
        if self._failed is not None:
            raise KafkaException(self._failed)


def main() -> int:
    """Load everything from the command line. Return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", required=True, help="host:port of a broker")
    parser.add_argument("--group", help="stay only a little ahead of this group's commits")
    arguments = parser.parse_args()
    loader = Loader(arguments.bootstrap, arguments.group)
    began = time.monotonic()
    loader.load(data.read())
    print(f"produced {loader.produced} flights in {time.monotonic() - began:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
