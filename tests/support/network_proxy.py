"""A TCP proxy before a broker that hurts what passes through it: cuts, resets, delays, half-open peers, bent commits.

Everything is forwarded in Kafka's frames, so that one reply can be dropped, delayed or replaced and the rest goes on.
A small one of our own, not a fake broker: the coordinator behind it is real, so a commit can be applied *and* refused.
"""

import asyncio
import concurrent.futures
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

from tests.support.kafka_frames import OFFSET_COMMIT, commit_reply, correlation_id, request_header

START_TIMEOUT_S = 10.0
FRAME_BYTES_MAX = 64 * 1024**2


class Bend(StrEnum):
    """What becomes of a commit."""

    REFUSE = "refused"
    """Never forwarded; answered with an error."""
    APPLY_AND_REFUSE = "applied, refused"
    """Forwarded; its reply is replaced by an error."""
    DROP_REQUEST = "request dropped"
    DROP_REPLY = "applied, reply dropped"
    DELAY_REQUEST = "request late"
    DELAY_REPLY = "applied, reply late"
    RESET_BEFORE = "connection reset"
    """Never forwarded; the connection is reset in its place."""
    RESET_AFTER = "applied, connection reset"


@dataclass(frozen=True)
class CommitFault:
    """What to do to one commit."""

    bend: Bend
    code: int = 0
    """The error code, for those that are refused."""
    delay_s: float = 0.0

    def __str__(self) -> str:
        """For a table of figures."""
        return (
            f"{self.bend}"
            + (f" with {self.code}" if self.code else "")
            + (f" {self.delay_s:g} s" if self.delay_s else "")
        )


class NetworkProxy:
    """Runs on a thread of its own from enter to exit; every method may be called from any thread and returns at once.

    Args:
        upstream_port: where the broker's listener is, on loopback.
        port: where clients connect, on loopback; what that listener advertises.
    """

    def __init__(self, upstream_port: int, port: int) -> None:
        self.bootstrap = f"127.0.0.1:{port}"
        self._upstream_port = upstream_port
        self._port = port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="network-proxy", daemon=True)
        self._ready: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._stop = asyncio.Event()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._latency_s = 0.0
        self._links: set[_Link] = set()
        self._faults: dict[str, deque[CommitFault]] = {}
        self.bent = 0
        """Commits that a fault was done to."""

    def cut(self) -> None:
        """Let nothing pass, either way, and connect nobody, until `heal`; no connection ends by it."""
        self._loop.call_soon_threadsafe(self._flowing.clear)

    def heal(self) -> None:
        """Let everything pass again, at once: what was held back, too."""
        self._latency_s = 0.0
        self._loop.call_soon_threadsafe(self._flowing.set)

    def reset(self) -> None:
        """Reset every connection that there is; new ones are let through."""
        self._each(_Link.reset)

    def half_open(self) -> None:
        """Lose the broker's end of every connection and tell nobody: the clients' ends stay, and hear nothing again."""
        self._each(_Link.orphan)

    def delay(self, seconds: float) -> None:
        """Let each frame take so long, each way, until `heal`."""
        self._latency_s = seconds

    def bend_commits(self, client_id: str, faults: list[CommitFault]) -> None:
        """Do these to the client's next commits, one each."""
        self._loop.call_soon_threadsafe(lambda: self._faults.setdefault(client_id, deque()).extend(faults))

    # On the proxy's thread

    def _each(self, action: Callable[["_Link"], None]) -> None:
        def act() -> None:
            for link in list(self._links):
                action(link)

        self._loop.call_soon_threadsafe(act)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        try:
            server = await asyncio.start_server(self._accept, "127.0.0.1", self._port)
        except OSError as error:
            self._ready.set_exception(error)
            return
        self._ready.set_result(None)
        await self._stop.wait()
        server.close()
        for link in list(self._links):
            link.reset()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._flowing.wait()
        try:
            upstream = await asyncio.open_connection("127.0.0.1", self._upstream_port)
        except OSError:  # the broker is down: so is the connection
            _reset(writer)
            return
        link = _Link((reader, writer), upstream)
        self._links.add(link)
        try:
            async with asyncio.TaskGroup() as pumps:
                pumps.create_task(self._pump_requests(link))
                pumps.create_task(self._pump_replies(link))
        except* (OSError, asyncio.IncompleteReadError):  # one end is gone: end the other one
            pass
        finally:
            link.reset()
            self._links.discard(link)

    async def _pump_requests(self, link: "_Link") -> None:
        while True:
            frame = await _read(link.client[0])
            await self._pass()
            if link.orphaned:
                continue
            header = request_header(frame)
            faults = self._faults.get(header.client_id) if header.api_key == OFFSET_COMMIT else None
            if not faults:
                await _write(link.broker[1], frame)
                continue
            self.bent += 1
            await self._bend(link, frame, header.correlation_id, faults.popleft())

    async def _bend(self, link: "_Link", frame: bytes, correlation: int, fault: CommitFault) -> None:
        match fault.bend:
            case Bend.REFUSE:
                await _write(link.client[1], commit_reply(frame, fault.code))
            case Bend.APPLY_AND_REFUSE:
                link.replies[correlation] = lambda _: _write(link.client[1], commit_reply(frame, fault.code))
            case Bend.DROP_REPLY:
                link.replies[correlation] = lambda _: asyncio.sleep(0)
            case Bend.DELAY_REPLY:
                link.replies[correlation] = lambda reply: link.later(fault.delay_s, link.client[1], reply)
            case Bend.DELAY_REQUEST:
                await link.later(fault.delay_s, link.broker[1], frame)
            case Bend.RESET_BEFORE:
                link.reset()
            case Bend.RESET_AFTER:
                link.replies[correlation] = lambda _: link.reset_soon()
            case Bend.DROP_REQUEST:
                pass
        if correlation in link.replies:
            await _write(link.broker[1], frame)

    async def _pump_replies(self, link: "_Link") -> None:
        while True:
            try:
                frame = await _read(link.broker[0])
            except (OSError, asyncio.IncompleteReadError):
                if link.orphaned:
                    return
                raise
            await self._pass()
            if (bent := link.replies.pop(correlation_id(frame), None)) is not None:
                await bent(frame)
            elif not link.orphaned:
                await _write(link.client[1], frame)

    async def _pass(self) -> None:
        if self._latency_s:
            await asyncio.sleep(self._latency_s)
        await self._flowing.wait()

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.result(START_TIMEOUT_S)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._flowing.set)
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(START_TIMEOUT_S)


Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class _Link:
    """One client's connection and ours to the broker."""

    def __init__(self, client: Stream, broker: Stream) -> None:
        self.client = client
        self.broker = broker
        self.orphaned = False
        self.replies: dict[int, Callable[[bytes], Coroutine[Any, Any, None]]] = {}
        """What to do with the reply of a correlation id, in place of passing it on."""
        self._late: set[asyncio.Task[None]] = set()

    def reset(self) -> None:
        for task in self._late:
            task.cancel()
        for _, writer in (self.client, self.broker):
            _reset(writer)

    async def reset_soon(self) -> None:
        self.reset()

    def orphan(self) -> None:
        self.orphaned = True
        _reset(self.broker[1])

    async def later(self, delay_s: float, writer: asyncio.StreamWriter, frame: bytes) -> None:
        async def send() -> None:
            await asyncio.sleep(delay_s)
            await _write(writer, frame)

        task = asyncio.create_task(send())
        self._late.add(task)
        task.add_done_callback(self._late.discard)


async def _read(reader: asyncio.StreamReader) -> bytes:
    (size,) = struct.unpack(">i", await reader.readexactly(4))
    if not 0 <= size <= FRAME_BYTES_MAX:
        raise OSError(f"a frame of {size} bytes")
    return await reader.readexactly(size)


async def _write(writer: asyncio.StreamWriter, frame: bytes) -> None:
    writer.write(struct.pack(">i", len(frame)) + frame)
    await writer.drain()


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close without a farewell: the other end sees a reset."""
    if not writer.is_closing():
        raw = writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
