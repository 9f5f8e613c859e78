"""Windows for tests over topics as they are, and records with the headers that the runtime writes."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple, cast

from confluent_kafka import Producer, TopicPartition
from confluent_kafka import admin as kafka_admin
from confluent_kafka.admin import AdminClient

from parallel_consumer_spark import Window

TIMEOUT_S = 30.0


class Sent(NamedTuple):
    """One record to produce."""

    partition: int
    key: str | None
    value: bytes | None
    headers: dict[str, bytes]
    timestamp_ms: int = 0
    """Unix milliseconds; 0 is now."""


def send(
    bootstrap: str, topic: str, records: Iterable[Sent], *, transactional_id: str | None = None, end: str = "commit"
) -> None:
    """Produce in order, and return when all is acknowledged; with an id, in one transaction that ends by `commit` or `abort`."""
    config: dict[str, str | int] = {"bootstrap.servers": bootstrap, "log_level": 0}
    if transactional_id is not None:
        config["transactional.id"] = transactional_id
    producer, failed = Producer(config), list[str]()
    if transactional_id is not None:
        producer.init_transactions(TIMEOUT_S)
        producer.begin_transaction()
    for one in records:
        producer.produce(
            topic,
            one.value,
            one.key,
            partition=one.partition,
            timestamp=one.timestamp_ms,
            headers=cast("Any", list(one.headers.items())),
            on_delivery=lambda error, _: None if error is None else failed.append(str(error)),
        )
    assert not producer.flush(TIMEOUT_S)
    assert not failed, failed[:3]
    if transactional_id is not None:
        (producer.commit_transaction if end == "commit" else producer.abort_transaction)(TIMEOUT_S)


def topic_id(bootstrap: str, topic: str) -> str:
    """Return the broker's id of a topic, in Kafka's base64 form."""
    admin = cast("Any", AdminClient({"bootstrap.servers": bootstrap, "log_level": 0}))
    asked = admin.describe_topics(_collection([topic]))
    return str(asked[topic].result(TIMEOUT_S).topic_id)


def _collection(names: list[str]) -> Any:
    import confluent_kafka  # noqa: PLC0415 - its annotations leave this class out

    return cast("Any", confluent_kafka).TopicCollection(names)


def ends(bootstrap: str, topic: str, partitions: int = 2) -> dict[int, int]:
    """Return each partition's last stable offset."""
    admin, module = cast("Any", AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})), cast("Any", kafka_admin)
    wanted = {TopicPartition(topic, number): module.OffsetSpec.latest() for number in range(partitions)}
    asked = admin.list_offsets(wanted, isolation_level=_committed(), request_timeout=TIMEOUT_S)
    return {int(one.partition): int(future.result(TIMEOUT_S).offset) for one, future in asked.items()}


def _committed() -> Any:
    import confluent_kafka  # noqa: PLC0415 - as above

    return cast("Any", confluent_kafka).IsolationLevel.READ_COMMITTED


def window_json(
    bootstrap: str,
    topic: str,
    ranges: dict[int, tuple[int, int]],
    *,
    sequence: int = 1,
    source: str = "Results",
    **more: Any,
) -> str:
    """Return the text of a window's file."""
    parts = [{"partition": number, "start": start, "end": end} for number, (start, end) in ranges.items()]
    return json.dumps(
        {
            "version": 1,
            "consumer": "flights",
            "namespace": "default",
            "consumerUid": "4f1c",
            "entry": "archive",
            "sequence": sequence,
            "source": source,
            "topics": [{"name": topic, "id": topic_id(bootstrap, topic), "partitions": parts}],
            "kafka": {"bootstrapServers": bootstrap, "config": {}},
            **more,
        }
    )


def window_of(bootstrap: str, topic: str, ranges: dict[int, tuple[int, int]], **more: Any) -> Window:
    """Return a window; arguments as `window_json` takes them."""
    return Window.from_json(window_json(bootstrap, topic, ranges, **more))


def window_file(folder: Path, text: str) -> Path:
    """Write a window's file."""
    path = folder / "window.json"
    path.write_text(text)
    return path
