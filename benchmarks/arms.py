"""What the runtime is compared with: a plain consume loop, and a bare consumer that does nothing.

`python -m benchmarks.arms loop|bare BOOTSTRAP TOPIC GROUP` runs one arm to its end.
"""

import os
import sys
import time

from confluent_kafka import Consumer, KafkaException

from benchmarks.meter import WORK_MS_ENV, Meter

BATCH = 500
COMMIT_INTERVAL_S = 1.0


def _consumer(bootstrap: str, topic: str, group: str) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
        }
    )
    consumer.subscribe([topic])
    return consumer


def loop(bootstrap: str, topic: str, group: str) -> None:
    """Handle one record after the other, as most consumers do, and commit every second."""
    work_s = float(os.environ[WORK_MS_ENV]) / 1000
    consumer, meter = _consumer(bootstrap, topic, group), Meter()
    committed_at = time.monotonic()
    while not meter.done:
        for message in consumer.consume(BATCH, timeout=0.1):
            if (error := message.error()) is not None:
                raise KafkaException(error)
            begun_at = meter.begin()
            message.key()
            message.value()
            if work_s:
                time.sleep(work_s)
            meter.end(begun_at)
            consumer.store_offsets(message)
            if meter.done:
                break
        if meter.count and time.monotonic() - committed_at >= COMMIT_INTERVAL_S:
            committed_at = time.monotonic()
            consumer.commit(asynchronous=True)
    consumer.close()


def bare(bootstrap: str, topic: str, group: str) -> None:
    """Consume in batches and do nothing: what any Python consumer could reach at most."""
    consumer, meter = _consumer(bootstrap, topic, group), Meter()
    while not meter.done:
        messages = consumer.consume(BATCH, timeout=0.1)
        for message in messages:
            if (error := message.error()) is not None:
                raise KafkaException(error)
        if messages:
            meter.add(len(messages), time.perf_counter())
    consumer.close()


def main(arguments: list[str]) -> None:
    """Run the arm that is named first."""
    name, bootstrap, topic, group = arguments
    {"loop": loop, "bare": bare}[name](bootstrap, topic, group)


if __name__ == "__main__":
    main(sys.argv[1:])
