"""GET /healthz, /readyz, /metrics, /status, /offsets: a thread of its own, so that a handler that blocks the loop cannot hide it."""

import logging
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import ClassVar, Protocol

from prometheus_client import CollectorRegistry

from parallel_consumer_runtime.errors import RuntimeFailure
from parallel_consumer_runtime.observe.connections import CONNECTIONS_MAX, BoundedServer, ConnectionCollector
from parallel_consumer_runtime.observe.metrics import CONTENT_TYPE, make_registry, render_metrics
from parallel_consumer_runtime.observe.snapshot import Board
from parallel_consumer_runtime.settings import MemberState, OffsetsAnswer

POLL_AGE_MAX_S = 60.0
"""/healthz fails when the owner thread did not come round for so long: it is stuck, and a restart helps."""
LOOP_AGE_MAX_S = 300.0
"""/healthz fails when the event loop did not come round for so long: a handler blocks it for good."""
_READY = {MemberState.RUNNING, MemberState.PAUSED}
_REQUEST_TIMEOUT_S = 5

_log = logging.getLogger(__name__)


def unhealthy(board: Board, now: float) -> str | None:
    """Return why the process should be started anew, None when it is well.

    Args:
        board: the newest snapshot.
        now: monotonic seconds.
    """
    snapshot = board.get()
    if snapshot is None:
        return None
    if now - snapshot.taken_at > LOOP_AGE_MAX_S:
        return f"the event loop stands still for {now - snapshot.taken_at:.0f} s: a handler blocks it"
    # Compared at the moment of the snapshot: both stop together when the machine sleeps.
    if snapshot.taken_at - snapshot.polled_at > POLL_AGE_MAX_S:
        return f"the consumer was not polled for {snapshot.taken_at - snapshot.polled_at:.0f} s"
    head = snapshot.status.head_of_line
    if snapshot.stuck_after_s is not None and head is not None and head.age_s > snapshot.stuck_after_s:
        place = f"{head.topic}[{head.partition}]@{head.offset}"
        return f"{place} runs for {head.age_s:.0f} s: longer than spec.processing.stuckAfter"
    return None


def unready(board: Board) -> str | None:
    """Return why the member does not consume, None when it does."""
    snapshot = board.get()
    if snapshot is None or not snapshot.joined:
        return "the member has not joined its group yet"
    if snapshot.status.state not in _READY:
        return f"the member is {snapshot.status.state}"
    return None


class Asker(Protocol):
    """Asks the brokers for whoever asks it."""

    def ask(self) -> OffsetsAnswer:
        """Any thread; blocks for a few seconds at most.

        Raises:
            RuntimeFailure: why there is no answer, in one sentence.
        """
        ...


class StatusServer:
    """Serves a board from `start` until `stop`.

    Args:
        board: what is served.
        port: TCP port; 0 takes a free one.
        host: the address to listen on.
        connections_max: how many may be open at once.
        asker: who answers /offsets; None for a process that asks no brokers.
    """

    def __init__(
        self,
        board: Board,
        port: int,
        host: str = "",
        *,
        connections_max: int = CONNECTIONS_MAX,
        asker: Asker | None = None,
    ) -> None:
        registry = make_registry(board)
        handler = type("BoundHandler", (_Handler,), {"board": board, "registry": registry, "asker": asker})
        self._server = BoundedServer((host, port), handler, connections_max)
        registry.register(ConnectionCollector(self._server))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), name="status", daemon=True)

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self._server.server_address[1])

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def stop(self) -> None:
        """Answer nothing more and free the port. Twice is fine."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    board: ClassVar[Board]
    registry: ClassVar[CollectorRegistry]
    asker: ClassVar[Asker | None]
    timeout = _REQUEST_TIMEOUT_S
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer one request."""
        path = self.path.partition("?")[0]
        if path == "/status":
            snapshot = self.board.get()
            if snapshot is None:
                self._answer(HTTPStatus.SERVICE_UNAVAILABLE, b"starting\n")
            else:
                self._answer(HTTPStatus.OK, snapshot.status.model_dump_json(by_alias=True).encode(), "application/json")
        elif path == "/offsets" and self.asker is not None:
            self._tell_offsets(self.asker)
        elif path == "/metrics":
            self._answer(HTTPStatus.OK, render_metrics(self.registry), CONTENT_TYPE)
        elif path == "/healthz":
            self._judge(unhealthy(self.board, time.monotonic()))
        elif path == "/readyz":
            self._judge(unready(self.board))
        else:
            self._answer(HTTPStatus.NOT_FOUND, b"try /healthz, /readyz, /metrics, /status, /offsets\n")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Log at debug level: probes come every second."""
        _log.debug(format, *args)

    def _tell_offsets(self, asker: Asker) -> None:
        try:
            answer = asker.ask()
        except RuntimeFailure as failure:
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE, f"{failure}\n".encode())
        else:
            self._answer(HTTPStatus.OK, answer.model_dump_json(by_alias=True).encode(), "application/json")

    def _judge(self, problem: str | None) -> None:
        if problem is None:
            self._answer(HTTPStatus.OK, b"ok\n")
        else:
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE, problem.encode() + b"\n")

    def _answer(self, status: HTTPStatus, body: bytes, content_type: str = "text/plain; charset=utf-8") -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
