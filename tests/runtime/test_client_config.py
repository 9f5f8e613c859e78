"""Every setting of the manifest reaches the Kafka client, as the client itself tells it."""

import logging
from typing import Any

import pytest
from confluent_kafka import Consumer

from parallel_consumer_runtime.kafka.config import consumer_config
from parallel_consumer_runtime.settings import ParallelConsumerSpec, render_static
from tests.support.corpus import manifest
from tests.support.waiting import wait_until

FETCHING = {
    "fetch.min.bytes": "1024",
    "fetch.max.bytes": "10000000",
    "max.partition.fetch.bytes": "200000",
    "fetch.wait.max.ms": "250",
    "queued.min.messages": "5000",
    "queued.max.messages.kbytes": "4096",
    "heartbeat.interval.ms": "2000",
    "max.poll.interval.ms": "120000",
}


class _Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@pytest.mark.proves(29)
@pytest.mark.proves(24)
def test_every_setting_is_in_the_clients_own_dump() -> None:
    """The client lists what it runs with: the user's fetch tuning, and what the manifest manages."""
    changes: dict[str, Any] = {
        "spec__kafka__bootstrapServers": "127.0.0.1:1",
        "spec__kafka__consumerConfig": FETCHING,
        "spec__kafka__sessionTimeout": "20s",
    }
    spec = ParallelConsumerSpec.model_validate(manifest("orders", **changes)["spec"])
    handler = _Lines()
    logger = logging.Logger("the client's", logging.DEBUG)  # noqa: LOG001 - for this test alone
    logger.addHandler(handler)
    config = consumer_config(render_static("orders", spec), "orders-0")
    consumer = Consumer({**config, "debug": "conf", "log_level": 7, "logger": logger})
    try:
        wait_until(
            lambda: consumer.poll(0.01) is not None or any("session.timeout.ms" in line for line in handler.lines),
            "the client lists its properties",
            10,
        )
    finally:
        consumer.close()
    told = dict(line.split("]: ", 1)[-1].strip().split(" = ", 1) for line in handler.lines if " = " in line)
    fetching = dict(FETCHING)
    fetching["fetch.message.max.bytes"] = fetching.pop("max.partition.fetch.bytes")  # the client's own name for it
    expected = {
        **fetching,
        "session.timeout.ms": "20000",
        "group.instance.id": "orders-0",
        "enable.auto.commit": "false",
        "partition.assignment.strategy": "cooperative-sticky",
    }
    assert {name: told.get(name) for name in expected} == expected
