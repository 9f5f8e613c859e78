"""Asks pods what they do: `/status` by pod IP, bounded in time, size and number."""

import asyncio
import logging
from collections.abc import Iterable
from typing import Protocol, TypeVar

import aiohttp
from pydantic import BaseModel, ValidationError

from parallel_consumer_operator.pods import Pod
from parallel_consumer_runtime.settings import STATUS_PORT, MemberStatus, OffsetsAnswer

READ_TIMEOUT_S = 1.0
_BODY_BYTES_MAX = 4 * 1024**2
_CONNECTIONS_MAX = 64
OFFSETS_TIMEOUT_S = 6.0
"""A pod answers after five at the latest, that its brokers do not."""
_ASKED_MAX = 2

Answer = TypeVar("Answer", bound=BaseModel)

_log = logging.getLogger(__name__)


class MemberReader(Protocol):
    """Reads what pods tell."""

    async def read(self, pods: Iterable[Pod]) -> dict[str, MemberStatus]:
        """Return the snapshots by pod name; a pod that does not answer within READ_TIMEOUT_S is not in it."""
        ...

    async def offsets(self, pods: Iterable[Pod]) -> OffsetsAnswer | None:
        """Let one pod ask the brokers where its topics begin and end now; None when none of a few can."""
        ...


class HttpMemberReader:
    """Reads over HTTP. Belongs to the loop it was made in; close it."""

    def __init__(self) -> None:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=_CONNECTIONS_MAX),
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    async def read(self, pods: Iterable[Pod]) -> dict[str, MemberStatus]:
        """See MemberReader."""
        asked = [pod for pod in pods if pod.ip]
        answers = await asyncio.gather(*(self._read(pod) for pod in asked))
        return {pod.name: answer for pod, answer in zip(asked, answers, strict=True) if answer is not None}

    async def offsets(self, pods: Iterable[Pod]) -> OffsetsAnswer | None:
        """See MemberReader."""
        asked = [pod for pod in pods if pod.ip and pod.ready][:_ASKED_MAX]
        for pod in asked:
            if (answer := await self._get(pod, "/offsets", OffsetsAnswer, OFFSETS_TIMEOUT_S)) is not None:
                return answer
        return None

    async def _read(self, pod: Pod) -> MemberStatus | None:
        status = await self._get(pod, "/status", MemberStatus, READ_TIMEOUT_S)
        # An address that another pod took over meanwhile speaks for that pod.
        return status if status is not None and status.member == pod.name else None

    async def _get(self, pod: Pod, path: str, model: type[Answer], timeout_s: float) -> Answer | None:
        host = f"[{pod.ip}]" if pod.ip and ":" in pod.ip else pod.ip
        timeout = aiohttp.ClientTimeout(total=timeout_s)
        try:
            async with self._session.get(
                f"http://{host}:{STATUS_PORT}{path}", allow_redirects=False, timeout=timeout
            ) as response:
                if response.status != 200:  # noqa: PLR2004 - HTTP's OK
                    return None
                body = bytearray()
                async for chunk in response.content.iter_chunked(65536):
                    body += chunk
                    if len(body) > _BODY_BYTES_MAX:
                        _log.warning("pod %s: %s is larger than %d bytes; ignored", pod.name, path, _BODY_BYTES_MAX)
                        return None
            return model.model_validate_json(bytes(body))
        except (aiohttp.ClientError, TimeoutError, OSError, ValidationError) as error:
            _log.debug("pod %s does not answer %s: %s", pod.name, path, error)
            return None
