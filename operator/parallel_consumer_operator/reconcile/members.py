"""Asks pods what they do: `/status` by pod IP, bounded in time, size and number."""

import asyncio
import logging
from collections.abc import Iterable
from typing import Protocol

import aiohttp
from pydantic import ValidationError

from parallel_consumer_operator.pods import Pod
from parallel_consumer_runtime.settings import STATUS_PORT, MemberStatus

READ_TIMEOUT_S = 1.0
_BODY_BYTES_MAX = 4 * 1024**2
_CONNECTIONS_MAX = 64

_log = logging.getLogger(__name__)


class MemberReader(Protocol):
    """Reads what pods tell."""

    async def read(self, pods: Iterable[Pod]) -> dict[str, MemberStatus]:
        """Return the snapshots by pod name; a pod that does not answer within READ_TIMEOUT_S is not in it."""
        ...


class HttpMemberReader:
    """Reads over HTTP. Belongs to the loop it was made in; close it."""

    def __init__(self) -> None:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=_CONNECTIONS_MAX),
            timeout=aiohttp.ClientTimeout(total=READ_TIMEOUT_S),
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    async def read(self, pods: Iterable[Pod]) -> dict[str, MemberStatus]:
        """See MemberReader."""
        asked = [pod for pod in pods if pod.ip]
        answers = await asyncio.gather(*(self._read(pod) for pod in asked))
        return {pod.name: answer for pod, answer in zip(asked, answers, strict=True) if answer is not None}

    async def _read(self, pod: Pod) -> MemberStatus | None:
        host = f"[{pod.ip}]" if pod.ip and ":" in pod.ip else pod.ip
        try:
            async with self._session.get(f"http://{host}:{STATUS_PORT}/status", allow_redirects=False) as response:
                if response.status != 200:  # noqa: PLR2004 - HTTP's OK
                    return None
                body = bytearray()
                async for chunk in response.content.iter_chunked(65536):
                    body += chunk
                    if len(body) > _BODY_BYTES_MAX:
                        _log.warning("pod %s: /status is larger than %d bytes; ignored", pod.name, _BODY_BYTES_MAX)
                        return None
            status = MemberStatus.model_validate_json(bytes(body))
        except (aiohttp.ClientError, TimeoutError, OSError, ValidationError) as error:
            _log.debug("pod %s does not report: %s", pod.name, error)
            return None
        # An address that another pod took over meanwhile speaks for that pod.
        return status if status.member == pod.name else None
