"""The BitSet body: a count, then one bit per offset, 1 for complete, lowest bit first, then one zero byte."""

import struct
from itertools import accumulate
from operator import add

from parallel_consumer_runtime.offsets.errors import BodyError
from parallel_consumer_runtime.offsets.maps import INCOMPLETE_MAX, RANGES_MAX, OffsetMap, from_bounds

SPAN_MAX_V1 = 0x7FFF


def size_bytes(span: int, count_format: str) -> int:
    """Return the length of the body."""
    return struct.calcsize(count_format) + (span + 7) // 8 + 1


def pack(offsets: OffsetMap, count_format: str) -> bytes:
    """Return the body; `count_format` is `>h` for v1 and `>i` for v2."""
    span = offsets.span
    bits = (1 << span) - 1
    if len(offsets.incomplete) * 64 < span:
        for first, last in offsets.incomplete:
            bits ^= ((1 << (last - first + 1)) - 1) << (first - offsets.base)
        body = bits.to_bytes((span + 7) // 8, "little")
    else:
        # Many ranges: one character per offset, then one conversion, is linear where shifting is not.
        text = bytearray(b"1" * span)
        for first, last in offsets.incomplete:
            text[first - offsets.base : last - offsets.base + 1] = b"0" * (last - first + 1)
        text.reverse()
        body = int(text or b"0", 2).to_bytes((span + 7) // 8, "little")
    return struct.pack(count_format, span) + body + b"\0"


def unpack(body: bytes, base: int, count_format: str, span_max: int) -> OffsetMap:
    """Return the map.

    Raises:
        BodyError: the count is negative or more than `span_max`, the bits are too few, or their ranges too many.
    """
    head = struct.calcsize(count_format)
    if len(body) < head:
        msg = f"a bit set needs {head} bytes for its count and has {len(body)}"
        raise BodyError(msg)
    (span,) = struct.unpack_from(count_format, body)
    needed = (span + 7) // 8
    if span < 0 or len(body) - head < needed:
        msg = f"a bit set of {span} offsets needs {needed} bytes and has {len(body) - head}"
        raise BodyError(msg)
    if span > span_max:
        msg = f"a bit set of {span} offsets, where the log has {span_max}"
        raise BodyError(msg)
    if span == 0:
        return OffsetMap(base, base - 1)
    bits = int.from_bytes(body[head : head + needed], "little") & ((1 << span) - 1)
    if span - bits.bit_count() > INCOMPLETE_MAX:
        msg = f"{span - bits.bit_count()} incomplete offsets, of which {INCOMPLETE_MAX} are believed"
        raise BodyError(msg)
    # An edge stands where a bit differs from the one below it; what lies below and above all of them counts as complete.
    closed = bits | 1 << span
    edges = closed ^ (closed << 1 | 1) ^ 1 << (span + 1)
    ranges = edges.bit_count() // 2
    if ranges > RANGES_MAX:
        msg = f"a bit set of {ranges} incomplete ranges, of which {RANGES_MAX} are believed"
        raise BodyError(msg)
    # No loop here, which would take several times as long. Between two edges stand as many 0 as offsets but one.
    between = format(edges, "b").split("1")
    between.reverse()
    zeros = list(accumulate(map(len, between)))
    shift = range(base, base + 2 * ranges, 2)
    return from_bounds(base, base + span - 1, map(add, zeros[: 2 * ranges : 2], shift), map(add, zeros[1::2], shift))
