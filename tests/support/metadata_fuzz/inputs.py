"""What the fuzzer's bytes stand for: metadata, the offset that it was committed at, and where the log ends.

The first byte says how the others become metadata (`Kind`), where the commit lies and how long the log is; so a mutation
of the rest reaches behind Base64 and behind zstd.
"""

import base64
from enum import IntEnum
from typing import NamedTuple

import zstandard

OFFSET_MAX = 2**63 - 1
BASES = (0, 1, 7, 100, 1 << 31, 1 << 53, 1 << 62, OFFSET_MAX - 1000)
LOG_LENGTHS = (None, None, 0, 1, 11, 1_000, 1 << 20, 1 << 33)
BODY_MAX = 80_000
POWERS_FROM = 240
_PACKED = b"asJp"
_packer = zstandard.ZstdCompressor(level=1, write_content_size=False)


class Kind(IntEnum):
    """How the bytes after the first become metadata."""

    TEXT = 0
    """Characters as they are."""
    CONTENT = 1
    """Base64 is put around them."""
    PACKED = 2
    """The second byte is the first of the content, the others are packed."""
    REPEATED = 3
    """First byte; how often, the last sixteen values being powers of two; the length of a head; a head; what is repeated."""


class Case(NamedTuple):
    """One input of the decoder."""

    metadata: str
    base: int
    log_end: int | None


def case(data: bytes) -> Case:
    """Return what the fuzzer's bytes stand for."""
    if not data:
        return Case("", 0, None)
    how, rest = data[0], data[1:]
    base, length = BASES[how >> 2 & 7], LOG_LENGTHS[how >> 5]
    log_end = None if length is None else min(OFFSET_MAX, base + length)
    return Case(_metadata(Kind(how & 3), rest), base, log_end)


def data(kind: Kind, rest: bytes, base: int = 0, length: int | None = None) -> bytes:
    """Return the fuzzer's bytes of an input; `base` and `length` are of those above."""
    return bytes((kind | BASES.index(base) << 2 | LOG_LENGTHS.index(length) << 5,)) + rest


def repeated(magic: str, exponent: int, head: bytes, pattern: bytes) -> bytes:
    """Return the bytes of a body that repeats a pattern 2 ** exponent times."""
    return magic.encode() + bytes((POWERS_FROM + exponent, len(head))) + head + pattern


def _metadata(kind: Kind, rest: bytes) -> str:
    if kind is Kind.TEXT:
        return rest.decode("latin-1")
    magic, body = rest[:1], rest[1:]
    if kind is Kind.PACKED:
        body = _packer.compress(body)
    elif kind is Kind.REPEATED:
        body = _repeat(body)
        if magic and magic in _PACKED:
            body = _packer.compress(body)
    return base64.b64encode(magic + body).decode()


def _repeat(rest: bytes) -> bytes:
    if len(rest) < 2:
        return rest
    times = rest[0] if rest[0] < POWERS_FROM else 1 << rest[0] - POWERS_FROM
    head, pattern = rest[2 : 2 + rest[1]], rest[2 + rest[1] :]
    return head + pattern * min(times, BODY_MAX // (len(pattern) or 1))
