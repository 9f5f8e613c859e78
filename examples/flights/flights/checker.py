"""Computes in one pass what the handler computes per record, and compares while the results come in.

`python -m flights.checker --bootstrap HOST:PORT` exits with 0 when every result is there once, equal, and in order.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import orjson
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from flights import data

TOPIC = "flight-delays"
PARTITIONS = 4


class Delay(NamedTuple):
    """One expected result."""

    tail: str | None
    accumulated_min: int
    turnaround_min: int | None


def one_pass(flights: Sequence[data.Flight]) -> list[Delay]:
    """Return the expected result of every flight, by its place in time order."""
    sums: dict[str, int] = {}
    landings: dict[str, int | None] = {}
    expected: list[Delay] = []
    for flight in flights:
        delay = sum(minutes for minutes in (flight.departure_delay_min, flight.arrival_delay_min) if minutes)
        left = None if flight.departure_delay_min is None else flight.scheduled_min + flight.departure_delay_min
        if flight.tail is None:
            expected.append(Delay(None, delay, None))
            continue
        sums[flight.tail] = sums.get(flight.tail, 0) + delay
        before = landings.get(flight.tail)
        turnaround = left - before if left is not None and before is not None else None
        known = left is not None and flight.air_time_min is not None
        landings[flight.tail] = (
            left + flight.air_time_min if known and left is not None and flight.air_time_min is not None else None
        )
        expected.append(Delay(flight.tail, sums[flight.tail], turnaround))
    return expected


class Verdict(NamedTuple):
    """What the results came to."""

    handled: int
    """Flights with at least one result."""
    duplicates: int
    different: int
    """Results that differ from the one-pass computation."""
    out_of_order: int
    """Results that came before one of an earlier flight of the same aircraft."""

    @property
    def good(self) -> bool:
        """Everything once, equal, in order."""
        return self.handled == data.FLIGHTS and not (self.duplicates or self.different or self.out_of_order)


class Checker:
    """Consumes the results topic from its beginning, outside any group.

    Args:
        bootstrap: the brokers.
        expected: the one-pass results.
    """

    def __init__(self, bootstrap: str, expected: Sequence[Delay]) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "flights-checker",
                "enable.auto.commit": False,
                # A result that the broker dropped before it was read must be an error, not a jump forward.
                "auto.offset.reset": "error",
                # Results by the hundred: a request for each few would take time from the member that is measured.
                "fetch.min.bytes": 65_536,
                "fetch.wait.max.ms": 250,
                "log_level": 3,
            }
        )
        self._consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in range(PARTITIONS)])
        self._expected = expected
        self._seen = bytearray(len(expected))
        self._last: dict[bytes, int] = {}
        self._handled = self._duplicates = self._different = self._out_of_order = 0

    @property
    def verdict(self) -> Verdict:
        """What the results came to so far."""
        return Verdict(self._handled, self._duplicates, self._different, self._out_of_order)

    def run(self, stopped: Callable[[], bool]) -> Verdict:
        """Compare until every flight has a result or `stopped` says so.

        Raises:
            KafkaException: the broker dropped results before they were read.
        """
        while self._handled < len(self._expected) and not stopped():
            self._take(self._consumer.consume(1000, 0.1))
        # A duplicate may follow the last flight's result.
        self._take(self._consumer.consume(1000, 0.5))
        self._consumer.close()
        return self.verdict

    def _take(self, messages: Sequence[Message]) -> None:
        for message in messages:
            error = message.error()
            if error is None:
                self.compare(message.key(), message.value() or b"")
            elif error.code() == KafkaError._AUTO_OFFSET_RESET or error.fatal():  # noqa: SLF001 - librdkafka's local codes have this form
                raise KafkaException(error)

    def compare(self, key: bytes | str | None, value: bytes | str) -> None:
        """Take one result."""
        result = orjson.loads(value)
        number: int = result["id"]
        if self._seen[number]:
            self._duplicates += 1
        else:
            self._seen[number] = 1
            self._handled += 1
        tail, accumulated, turnaround = self._expected[number]
        same_key = (key.decode() if isinstance(key, bytes) else key) == tail
        if not same_key or result["accumulated_delay"] != accumulated or result["turnaround"] != turnaround:
            self._different += 1
        if isinstance(key, bytes):
            if self._last.get(key, -1) > number:
                self._out_of_order += 1
            self._last[key] = number


def main() -> int:
    """Check everything from the command line. Return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", required=True, help="host:port of a broker")
    parser.add_argument("--timeout", type=float, default=600, help="seconds to wait for the last result")
    arguments = parser.parse_args()
    deadline = time.monotonic() + arguments.timeout
    verdict = Checker(arguments.bootstrap, one_pass(data.read())).run(lambda: time.monotonic() > deadline)
    print(orjson.dumps(verdict._asdict()).decode())
    return 0 if verdict.good else 1


if __name__ == "__main__":
    sys.exit(main())
