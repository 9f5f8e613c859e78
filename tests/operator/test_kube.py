"""What the API server answers becomes the operator's error tree, with its own words."""

import asyncio
import json
from typing import Any

import aiohttp
import pytest
from kubernetes.aio.client.exceptions import ApiException

from parallel_consumer_operator.errors import (
    ConflictError,
    ForbiddenError,
    NotFoundError,
    OperatorError,
    RefusedError,
    RetryableError,
    ServerUnavailableError,
)
from parallel_consumer_operator.kube import connect, translated


def answered(status: int, message: str = "no") -> Exception:
    """Return the client's error for an answer."""
    error = ApiException(status=status, reason="Reason")
    error.body = json.dumps({"kind": "Status", "message": message})
    return error


async def raised(error: Exception) -> OperatorError:
    """Return what the operator sees of a client's error."""
    with pytest.raises(OperatorError) as seen:
        async with translated("apply StatefulSet a/b"):
            raise error
    return seen.value


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (400, RefusedError),
        (401, ForbiddenError),
        (403, ForbiddenError),
        (404, NotFoundError),
        (409, ConflictError),
        (410, RetryableError),
        (413, RefusedError),
        (422, RefusedError),
        (429, ServerUnavailableError),
        (500, ServerUnavailableError),
        (503, ServerUnavailableError),
    ],
)
def test_each_status_is_an_error_that_says_what_was_tried(status: int, expected: type[OperatorError]) -> None:
    """The server's message is kept."""
    error = asyncio.run(raised(answered(status, "spec.x: not so")))
    assert type(error) is expected
    assert str(error) == "apply StatefulSet a/b: spec.x: not so"


@pytest.mark.parametrize(
    "said",
    [
        "failed to convert new object to proper version: unable to convert unstructured object to apps/v1",
        "failed to create typed patch object (a/b; apps/v1, Kind=StatefulSet): .spec: expected map",
    ],
)
def test_a_field_of_the_wrong_type_is_refused_although_the_server_calls_it_internal(said: str) -> None:
    """Status 500 for the user's own mistake: trying again for ever would hide it."""
    assert type(asyncio.run(raised(answered(500, said)))) is RefusedError


@pytest.mark.parametrize("error", [aiohttp.ClientConnectionError("reset"), TimeoutError("slow"), OSError("down")])
def test_no_answer_is_worth_another_try(error: Exception) -> None:
    """Network trouble passes."""
    assert type(asyncio.run(raised(error))) is ServerUnavailableError


def test_an_answer_that_is_no_status_is_told_by_its_line() -> None:
    """A proxy's page is not JSON."""
    error: Any = ApiException(status=502, reason="Bad Gateway")
    error.body = b"<html>"
    assert str(asyncio.run(raised(error))).endswith(": 502 Bad Gateway")


def test_outside_a_cluster_without_a_kubeconfig_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason ends the process."""
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    async def scenario() -> None:
        async with connect(None):
            raise AssertionError

    with pytest.raises(OperatorError, match="no way to reach the API server"):
        asyncio.run(scenario())
