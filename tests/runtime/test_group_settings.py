"""Assignor and group protocol: from the manifest to properties that librdkafka accepts."""

from typing import Any

import pytest
from confluent_kafka import Consumer

from parallel_consumer_runtime.kafka.config import consumer_config
from parallel_consumer_runtime.settings import render_static
from tests.support.members import spec_for

CLASSIC = {"group.protocol": "classic", "session.timeout.ms": 45_000, "heartbeat.interval.ms": 3000}
CASES: list[tuple[dict[str, str], dict[str, Any]]] = [
    ({}, {**CLASSIC, "partition.assignment.strategy": "cooperative-sticky"}),
    ({"assignor": "Range"}, {**CLASSIC, "partition.assignment.strategy": "range"}),
    ({"assignor": "RoundRobin"}, {**CLASSIC, "partition.assignment.strategy": "roundrobin"}),
    ({"groupProtocol": "Consumer"}, {"group.protocol": "consumer", "group.remote.assignor": "uniform"}),
    (
        {"groupProtocol": "Consumer", "assignor": "Range"},
        {"group.protocol": "consumer", "group.remote.assignor": "range"},
    ),
]
GROUP_KEYS = {key for _, expected in CASES for key in expected}


@pytest.mark.parametrize(("written", "expected"), CASES, ids=lambda one: ",".join(map(str, one.values())))
@pytest.mark.proves(25)
def test_the_manifests_assignor_becomes_the_clients(written: dict[str, str], expected: dict[str, Any]) -> None:
    """Exactly the properties of the chosen protocol are set, and a client can be made of them."""
    spec = spec_for("127.0.0.1:1", "orders", "orders", "on_record")
    kafka = type(spec.kafka).model_validate({**spec.kafka.model_dump(mode="json", by_alias=True), **written})
    config = consumer_config(render_static("orders", spec.model_copy(update={"kafka": kafka})), "orders-0")
    assert {key: value for key, value in config.items() if key in GROUP_KEYS} == expected
    Consumer({**config, "log_level": 0}).close()
