"""An HTTP server of so many connections at once, a thread each; one more is refused at once, and counted."""

import socket
import threading
from collections.abc import Iterable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

CONNECTIONS_MAX = 32
_REFUSAL = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
_PREFIX = "parallel_consumer_status_connections"


class BoundedServer(ThreadingHTTPServer):
    """Serves until it is shut down.

    Args:
        address: host and port.
        handler: of one connection.
        connections_max: how many may be open at once.
    """

    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler], connections_max: int) -> None:
        self.connections_max = connections_max
        self.connections = 0
        """Open now."""
        self.refused = 0
        """Connections that were one too many."""
        self._lock = threading.Lock()
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Begin a thread for a connection, or refuse it. On the accepting thread."""
        with self._lock:
            room = self.connections < self.connections_max
            self.connections += room
            self.refused += not room
        if not room:
            self._refuse(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._closed()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve one connection to its end. On a thread of its own."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._closed()

    def _refuse(self, request: socket.socket) -> None:
        # Nothing is waited for: whoever is slow must not keep the next one from being heard.
        request.setblocking(False)
        with suppress(OSError):
            request.send(_REFUSAL)
        self.shutdown_request(request)

    def _closed(self) -> None:
        with self._lock:
            self.connections -= 1


class ConnectionCollector(Collector):
    """Tells of a server's connections. Any thread."""

    def __init__(self, server: BoundedServer) -> None:
        self._server = server

    def collect(self) -> Iterable[Metric]:
        """Yield them, their bound, and how many were refused."""
        server = self._server
        yield GaugeMetricFamily(_PREFIX, "Connections to the status server", value=server.connections)
        yield GaugeMetricFamily(f"{_PREFIX}_max", "Bound: connections to it", value=server.connections_max)
        yield CounterMetricFamily(f"{_PREFIX}_refused", "Connections that were one too many", value=server.refused)
