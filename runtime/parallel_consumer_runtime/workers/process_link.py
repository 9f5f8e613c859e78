"""A member's side of one handler process: starts it, feeds it, hears it, sees it end, ends it.

Keeps: nothing blocks the event loop but the start (a few milliseconds); no file descriptor and no zombie is left.
"""

import asyncio
import mmap
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from parallel_consumer_runtime.child.wire import READ_BYTES, Frames, Page, encode

REAP_S = 1.0
"""How long a process that closed its pipe may take to end before it is killed."""
_REAP_POLL_S = 0.005

# Spawned, never forked: a fork would copy librdkafka's locks without the threads that hold them. The module search
# path is this process's own, so that the child finds what the member found, however the member was started.
_CODE = "import sys; sys.path[:] = sys.argv[1].split(chr(0x1f)); from parallel_consumer_runtime.child.main import main; sys.exit(main(sys.argv[2], *map(int, sys.argv[3:])))"
_SEPARATOR = "\x1f"


class HandlerProcess:
    """One process, started at once. On the event loop's thread.

    Args:
        handler: package.module:function.
        hear: is called with messages of the process, some at a time.

    Raises:
        OSError: the system has no room for it.
    """

    def __init__(self, handler: str, hear: Callable[[list[Any]], None]) -> None:
        self._hear = hear
        self._loop = asyncio.get_running_loop()
        self._frames = Frames()
        self._outgoing = bytearray()
        self._waits_to_write = False
        self._silent = asyncio.Event()
        self._begun = 0
        fds: list[int] = []
        try:
            fds += os.pipe()
            fds += os.pipe()
            fds.append(_new_page())
            calls_fd, self._calls_fd, self._outcomes_fd, outcomes_fd, page_fd = fds
            self._page = Page(page_fd)
            theirs = (calls_fd, outcomes_fd, page_fd)
            arguments = [_SEPARATOR.join(sys.path), handler, *map(str, theirs), str(os.getpid())]
            self._process = subprocess.Popen(  # noqa: S603 - this interpreter, and the handler of the manifest
                [sys.executable, "-P", "-c", _CODE, *arguments], stdin=subprocess.DEVNULL, pass_fds=theirs
            )
        except BaseException:
            for fd in fds:
                os.close(fd)
            raise
        for fd in theirs:
            os.close(fd)
        os.set_blocking(self._calls_fd, False)
        os.set_blocking(self._outcomes_fd, False)
        self._loop.add_reader(self._outcomes_fd, self._read)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def begun(self) -> int:
        """The sequence number of the last call that it began; 0 when it began none. Known after its end too."""
        return self._begun if self._outcomes_fd < 0 else self._page.begun

    @property
    def silent(self) -> bool:
        """Whether it closed its pipe: it has ended, or is about to."""
        return self._silent.is_set()

    def send(self, message: object) -> None:
        """Send plain data; what does not fit into the pipe waits here, bounded by who sends."""
        if self._calls_fd >= 0:
            self._outgoing += encode(message)
            if not self._waits_to_write:
                self._write()

    def retire(self) -> None:
        """Let it end when it has done what it was sent. Twice is fine."""
        if self._calls_fd >= 0:
            self._stop_writing()
            os.close(self._calls_fd)
            self._calls_fd = -1

    def end(self) -> None:
        """Let it end now; a handler sees SystemExit, and may go on all the same until `kill`."""
        self._page.ending = True
        self.retire()
        self._process.terminate()

    def kill(self) -> None:
        """End it, whatever it does."""
        self._process.kill()

    async def watch(self, timeout_s: float) -> int | None:
        """Wait until it closes its pipe, `timeout_s` seconds at most. Return its status if it has ended, as subprocess."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._silent.wait()
        return self._process.poll()

    async def reap(self) -> int:
        """Return the status of a process that is ending; one that does not end is killed."""
        deadline = time.monotonic() + REAP_S
        while (status := self._process.poll()) is None:
            if time.monotonic() >= deadline:
                self._process.kill()
            await asyncio.sleep(_REAP_POLL_S)
        return status

    def close(self) -> None:
        """Hear what an ended process still said, and free everything; one that still runs is killed. Twice is fine."""
        self.retire()
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait(REAP_S)
        if self._outcomes_fd >= 0:
            while not self.silent and self._read():
                pass
            self._loop.remove_reader(self._outcomes_fd)
            os.close(self._outcomes_fd)
            self._outcomes_fd = -1
            self._begun = self._page.begun
            self._page.close()

    def _read(self) -> bool:
        try:
            data = os.read(self._outcomes_fd, READ_BYTES)
        except BlockingIOError:
            return False
        if data:
            if messages := self._frames.feed(data):
                self._hear(messages)
        else:
            self._loop.remove_reader(self._outcomes_fd)
            self._silent.set()
        return True

    def _write(self) -> None:
        try:
            del self._outgoing[: os.write(self._calls_fd, self._outgoing)]
        except BlockingIOError:
            pass
        except BrokenPipeError:  # it has ended: `watch` tells
            self._outgoing.clear()
        if not self._outgoing:
            self._stop_writing()
        elif not self._waits_to_write:
            self._waits_to_write = True
            self._loop.add_writer(self._calls_fd, self._write)

    def _stop_writing(self) -> None:
        if self._waits_to_write:
            self._waits_to_write = False
            self._loop.remove_writer(self._calls_fd)


def _new_page() -> int:
    """Return a file descriptor of zeroed memory for a `Page`."""
    if sys.platform == "linux":
        fd = os.memfd_create("handler-process")
    else:
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    os.ftruncate(fd, mmap.PAGESIZE)
    return fd


def ending_of(status: int) -> str:
    """Return in words how a process ended, from subprocess's status."""
    if status >= 0:
        return f"ended with exit status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    hint = " (out of memory, or killed from outside)" if -status == signal.SIGKILL else ""
    return f"was killed by {name}{hint}"
