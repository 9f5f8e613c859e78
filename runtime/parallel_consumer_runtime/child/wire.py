"""Between a member and a handler process: frames of plain data over pipes, and one page of shared memory.

Keeps: a member can tell which call a process had begun, however that process ended; the page outlives it.

marshal, because it takes less time than pickle for the one or two records of a frame, and what it reads can run no code. Both
ends are the same interpreter with the same sources, so its format needs no version.
"""

import marshal
import mmap
import struct
from typing import Any

READ_BYTES = 256 * 1024
"""Taken from a pipe at once; a Linux pipe holds 64 KiB."""
NO_CALL = 0
"""The sequence number of messages that speak of no call."""
READY = "ready"
"""The handler is imported."""
NOT_READY = "not-ready"
"""The handler cannot be used; the reason follows."""

_LENGTH = struct.Struct("<Q")
_BEGUN = struct.Struct("<Q")
_ENDING_AT = _BEGUN.size


def encode(message: Any) -> bytes:
    """Return the frame of a message of tuples, lists, strings, bytes, numbers and None.

    Raises:
        ValueError: it holds something else.
    """
    body = marshal.dumps(message)
    return _LENGTH.pack(len(body)) + body


class Frames:
    """Cuts what comes out of a pipe into messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Any]:
        """Take the next bytes. Return the messages that are whole now."""
        buffer = self._buffer
        buffer += data
        messages: list[Any] = []
        start = 0
        while len(buffer) >= start + _LENGTH.size:
            (size_bytes,) = _LENGTH.unpack_from(buffer, start)
            begin = start + _LENGTH.size
            if len(buffer) < begin + size_bytes:
                break
            start = begin + size_bytes
            messages.append(marshal.loads(bytes(buffer[begin:start])))  # noqa: S302 - runs no code; both ends are ours
        del buffer[:start]
        return messages


class Page:
    """What must be known of a process that can say nothing any more. Written without a system call."""

    def __init__(self, fd: int) -> None:
        self._memory = mmap.mmap(fd, mmap.PAGESIZE)

    @property
    def begun(self) -> int:
        """The sequence number of the last call that the process began; NO_CALL when it began none."""
        return int(_BEGUN.unpack_from(self._memory)[0])

    @begun.setter
    def begun(self, sequence: int) -> None:
        _BEGUN.pack_into(self._memory, 0, sequence)

    @property
    def ending(self) -> bool:
        """Whether the member wants the process to end, whatever it does."""
        return self._memory[_ENDING_AT] != 0

    @ending.setter
    def ending(self, ending: bool) -> None:
        self._memory[_ENDING_AT] = ending

    def close(self) -> None:
        """Let go of the memory. Twice is fine."""
        self._memory.close()
