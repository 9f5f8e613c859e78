"""A broker that tests may kill, behind a proxy that they may cut."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import NamedTuple

from tests.support.kafka import KafkaBroker, ProxiedListener
from tests.support.network_proxy import NetworkProxy
from tests.support.ports import free_ports


class Endangered(NamedTuple):
    """The broker by its direct address, and the proxy before its second listener."""

    broker: KafkaBroker
    proxy: NetworkProxy


@contextmanager
def endangered_broker() -> Generator[Endangered]:
    """Run both for the block."""
    behind, before = free_ports(2)
    with (
        KafkaBroker(proxied=ProxiedListener(behind, before)) as broker,
        NetworkProxy(upstream_port=behind, port=before) as proxy,
    ):
        yield Endangered(broker, proxy)
