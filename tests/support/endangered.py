"""A broker that tests may kill, behind a proxy that they may cut."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import NamedTuple

from tests.support.kafka import KafkaBroker, ProxiedListener
from tests.support.network_proxy import NetworkProxy
from tests.support.ports import free_ports

QUICK_RESTART = {"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "500"}
"""A killed broker is let in again only when its old registration's session is over: 9 s by default."""


class Endangered(NamedTuple):
    """The broker by its direct address, and the proxy before its second listener."""

    broker: KafkaBroker
    proxy: NetworkProxy


@contextmanager
def endangered_broker() -> Generator[Endangered]:
    """Run both for the block."""
    behind, before = free_ports(2)
    with (
        KafkaBroker(proxied=ProxiedListener(behind, before), properties=QUICK_RESTART) as broker,
        NetworkProxy(upstream_port=behind, port=before) as proxy,
    ):
        yield Endangered(broker, proxy)
