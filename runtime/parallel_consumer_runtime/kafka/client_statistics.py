"""What librdkafka says of its own queues: records that it fetched ahead of us. Pure."""

import json
from typing import Any, NamedTuple

INTERVAL_MS = 5000
FETCHED_KIB_MAX = 16_384
"""What a consumer may fetch ahead, unless the manifest says otherwise. It stops asking when there is as much, so that what it
had asked for comes on top: one fetch of each partition at most."""


class FetchedAhead(NamedTuple):
    """What the client holds that was not polled yet."""

    records: int = 0
    size_bytes: int = 0


class Ahead(NamedTuple):
    """What is on its way to the event loop."""

    batches: int
    """Handed over and not taken."""
    batches_max: int
    size_bytes: int
    """Fetched by the client, a few seconds ago."""
    bytes_max: int


def fetched_ahead(statistics: str) -> FetchedAhead:
    """Return what a consumer's statistics, as JSON, say of it.

    All partitions' queues lead to the consumer's one, and each of them tells the length of that.
    """
    topics: dict[str, Any] = json.loads(statistics).get("topics", {})
    queues = [one for topic in topics.values() for one in topic["partitions"].values()]
    return FetchedAhead(
        max((one["fetchq_cnt"] for one in queues), default=0), max((one["fetchq_size"] for one in queues), default=0)
    )
