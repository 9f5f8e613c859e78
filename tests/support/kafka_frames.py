"""As much of Kafka's wire format as a proxy needs: a request's header, and a commit's reply with an error of our choice."""

import struct
from dataclasses import dataclass

OFFSET_COMMIT = 8
COMMIT_VERSIONS = range(7, 10)
"""Those that are parsed here; 8 and later have compact strings and arrays, and tagged fields."""
FLEXIBLE_SINCE = 8


@dataclass(frozen=True)
class RequestHeader:
    """The start of every request."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str


class _Fields:
    """Reads a frame's fields in order; running short is a struct.error."""

    def __init__(self, frame: bytes, *, flexible: bool = False) -> None:
        self._frame = frame
        self._at = 0
        self.flexible = flexible

    def take(self, layout: str) -> int:
        (value,) = struct.unpack_from(layout, self._frame, self._at)
        self._at += struct.calcsize(layout)
        return int(value)

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.take(">B")
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return value

    def string(self) -> str:
        """A string of the body; null reads as empty."""
        return self._text(self.varint() - 1 if self.flexible else self.take(">h"))

    def header_string(self) -> str:
        """The client id, which is never compact."""
        return self._text(self.take(">h"))

    def count(self) -> int:
        return max(self.varint() - 1 if self.flexible else self.take(">i"), 0)

    def tags(self) -> None:
        """Skip the tagged fields that end a structure."""
        for _ in range(self.varint() if self.flexible else 0):
            self.varint()
            self._at += self.varint()

    def _text(self, length: int) -> str:
        text = self._frame[self._at : self._at + max(length, 0)].decode()
        self._at += max(length, 0)
        return text


def request_header(frame: bytes) -> RequestHeader:
    """Parse the header of a request, without its length."""
    fields = _Fields(frame)
    return RequestHeader(fields.take(">h"), fields.take(">h"), fields.take(">i"), fields.header_string())


def correlation_id(reply: bytes) -> int:
    """Return which request a reply answers."""
    (value,) = struct.unpack_from(">i", reply)
    return int(value)


def commit_reply(request: bytes, code: int) -> bytes:
    """Return a reply to an OffsetCommit request in which every partition has an error code; 0 is success.

    Raises:
        ValueError: the request is none, or of a version that is not known here.
    """
    header = request_header(request)
    if header.api_key != OFFSET_COMMIT or header.api_version not in COMMIT_VERSIONS:
        raise ValueError(f"not a commit of a known version: {header}")
    fields = _Fields(request, flexible=header.api_version >= FLEXIBLE_SINCE)
    fields.take(">q")  # key, version and correlation id
    fields.header_string()
    fields.tags()
    fields.string()  # group
    fields.take(">i")  # generation
    fields.string()  # member
    fields.string()  # instance
    topics: list[tuple[str, list[int]]] = []
    for _ in range(fields.count()):
        topic, partitions = fields.string(), list[int]()
        for _ in range(fields.count()):
            partitions.append(fields.take(">i"))
            fields.take(">q")  # offset
            fields.take(">i")  # leader epoch
            fields.string()  # metadata
            fields.tags()
        fields.tags()
        topics.append((topic, partitions))
    return _reply(header.correlation_id, topics, code, flexible=fields.flexible)


def _reply(correlation: int, topics: list[tuple[str, list[int]]], code: int, *, flexible: bool) -> bytes:
    def length(value: int, layout: str) -> bytes:
        return _varint(value + 1) if flexible else struct.pack(layout, value)

    tags = b"\0" if flexible else b""
    parts = [struct.pack(">i", correlation), tags, struct.pack(">i", 0), length(len(topics), ">i")]
    for topic, partitions in topics:
        name = topic.encode()
        parts += [length(len(name), ">h"), name, length(len(partitions), ">i")]
        parts += [struct.pack(">ih", partition, code) + tags for partition in partitions]
        parts.append(tags)
    return b"".join([*parts, tags])


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
