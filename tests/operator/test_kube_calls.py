"""What the operator's calls ask of the API server, against a server that writes down what it was asked."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web
from kubernetes.aio import client

from parallel_consumer_operator.errors import NotFoundError, RefusedError, ServerUnavailableError
from parallel_consumer_operator.kube import ApiServer
from tests.support.ports import free_ports

_LOG = "/api/v1/namespaces/default/pods/archive-1-x/log"


class _Server:
    """Answers one path, and keeps the requests."""

    def __init__(self, answer: web.Response | Callable[[], web.Response]) -> None:
        self._answer = answer
        self.asked: list[tuple[str, str, dict[str, str], Any]] = []

    def ask(self, call: Callable[[ApiServer], Awaitable[Any]]) -> Any:
        """Serve while a call is made; return what it returned."""

        async def scenario() -> Any:
            app = web.Application()
            app.router.add_route("*", "/{path:.*}", self._handle)
            runner = web.AppRunner(app)
            await runner.setup()
            (port,) = free_ports(1)
            await web.TCPSite(runner, "127.0.0.1", port).start()
            try:
                settings = client.Configuration(host=f"http://127.0.0.1:{port}")
                async with client.ApiClient(settings) as api:
                    return await call(ApiServer(api))
            finally:
                await runner.cleanup()

        return asyncio.run(scenario())

    async def _handle(self, request: web.Request) -> web.Response:
        body = await request.json() if request.can_read_body else None
        self.asked.append((request.method, request.path, dict(request.query), body))
        return self._answer() if callable(self._answer) else self._answer


def _status(code: int, message: str) -> web.Response:
    return web.json_response({"kind": "Status", "message": message}, status=code)


def _tail(kube: ApiServer) -> Awaitable[str]:
    return kube.log_tail("default", "archive-1-x", "driver", lines=200, size_bytes=1000)


def test_the_end_of_a_log_is_read_as_text() -> None:
    """The last lines of one container; what they say is no JSON."""
    server = _Server(web.Response(text="first\nlast: ü\n"))
    assert server.ask(_tail) == "first\nlast: ü\n"
    assert server.asked == [("GET", _LOG, {"container": "driver", "tailLines": "200"}, None)]


def test_of_lines_of_any_length_only_the_end_is_kept() -> None:
    """Megabytes in one line do not stay in the operator's memory."""
    server = _Server(web.Response(text="x" * 3_000_000 + "the end"))
    told = server.ask(_tail)
    assert len(told) == 1000
    assert told.endswith("xthe end")


@pytest.mark.parametrize(
    ("code", "message", "expected"),
    [
        (404, 'pods "archive-1-x" not found', NotFoundError),
        (400, 'container "driver" is waiting to start', RefusedError),
        (500, "dial tcp 192.0.2.7:10250: no route to host", ServerUnavailableError),
    ],
)
def test_a_log_that_cannot_be_read_says_why(code: int, message: str, expected: type[Exception]) -> None:
    """A pod that is gone, one that has not started, a node that does not answer: each its own error."""
    with pytest.raises(expected, match="read the log of Pod default/archive-1-x: "):
        _Server(lambda: _status(code, message)).ask(_tail)


def test_a_job_is_stopped_by_one_write_that_names_its_uid() -> None:
    """Cause and suspension together, or neither; never for another Job of the same name."""
    server = _Server(web.json_response({}))
    server.ask(lambda kube: kube.stop_job("default", "archive-1", "u-1", {"why": "RunTimeout"}))
    ((method, path, _, body),) = server.asked
    assert (method, path) == ("PATCH", "/apis/batch/v1/namespaces/default/jobs/archive-1")
    assert body == {"metadata": {"uid": "u-1", "annotations": {"why": "RunTimeout"}}, "spec": {"suspend": True}}


def test_a_job_that_is_gone_is_stopped() -> None:
    """There is nothing left to do."""
    server = _Server(lambda: _status(404, "not found"))
    assert server.ask(lambda kube: kube.stop_job("default", "archive-1", "u-1", {})) is None


def test_events_are_asked_for_by_the_uid_they_tell_of() -> None:
    """Names are used again."""
    server = _Server(web.json_response({"items": [{"reason": "FailedCreate", "note": "quota"}]}))
    told = server.ask(lambda kube: kube.events_about("default", "u-1"))
    assert [event["note"] for event in told] == ["quota"]
    ((_, path, query, _),) = server.asked
    assert path == "/apis/events.k8s.io/v1/namespaces/default/events"
    assert query["fieldSelector"] == "regarding.uid=u-1"


@pytest.mark.parametrize(("kind", "policy"), [("SparkJob", "Background"), ("Pod", None)])
def test_a_deletion_names_the_uid_and_takes_along_what_the_object_owns(kind: str, policy: str | None) -> None:
    """A new object of the same name stays; a pod's grace and its dependents are the cluster's own matter."""
    server = _Server(web.json_response({}))
    server.ask(lambda kube: kube.delete(kind, "default", "archive", "u-1"))
    ((method, _, _, body),) = server.asked
    assert method == "DELETE"
    assert body["preconditions"] == {"uid": "u-1"}
    assert body.get("propagationPolicy") == policy
