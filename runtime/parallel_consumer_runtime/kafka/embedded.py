"""An embedded broker: librdkafka's mock cluster, in this process, on loopback. For demos and a laptop's inner loop.

It speaks the real protocol (produce, fetch, classic groups, commits with metadata) and keeps everything in memory:
about 5 MB per partition, dropping the oldest beyond that. Topics come into being when they are asked for, with four
partitions each.
"""

from collections.abc import Iterable
from typing import Self

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

PARTITIONS = 4
_TIMEOUT_S = 10.0


class EmbeddedBroker:
    """Runs from `start` (or entering it) until `stop`."""

    def __init__(self) -> None:
        self._cluster: Producer | None = None
        self.bootstrap = ""
        """`host:port`, once it was started."""

    def start(self) -> None:
        """Start listening on a free port of loopback."""
        # The client's own connections are refused when the cluster ends with it: nothing worth a line.
        self._cluster = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "embedded", "log_level": 0})
        broker = next(iter(self._cluster.list_topics(timeout=_TIMEOUT_S).brokers.values()))
        self.bootstrap = f"{broker.host}:{broker.port}"

    def create_topics(self, names: Iterable[str]) -> None:
        """Make topics exist."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        for name in names:
            admin.list_topics(name, timeout=_TIMEOUT_S)

    def stop(self) -> None:
        """Forget everything. Twice is fine."""
        self._cluster = None

    def __enter__(self) -> Self:
        """Start."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self.stop()
