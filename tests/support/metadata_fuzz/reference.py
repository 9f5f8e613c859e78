"""A slow reader of commit metadata, written from the format alone and sharing no line with the codec that it judges.

Only zstd itself is the same library; where a frame ends is read here from its block headers.
"""

import io
from collections.abc import Iterator
from typing import NamedTuple

import zstandard

CHARACTERS_MAX = 32_767
UNPACKED_MAX = 49_160
RUNS_MAX = 12_290
RUNS_MAX_WITH_ZEROS = 2_048
RANGES_MAX = 6_144
INCOMPLETE_MAX = 131_072
WINDOW_MAX = 1 << 23
OFFSET_MAX = 2**63 - 1
_DIGITS = {
    character: value
    for value, character in enumerate("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
}
_BITSETS = {0x6C: 2, 0x6F: 4, 0x61: 2, 0x73: 4}
_RUNS = {0x6E: 2, 0x65: 4, 0x4A: 2, 0x70: 4}
"""First byte, and the width of a count."""
_unpacker = zstandard.ZstdDecompressor(max_window_size=WINDOW_MAX)
_PACKED = {0x61, 0x73, 0x4A, 0x70}


class NoMapError(Exception):
    """The metadata is no map, or one beyond what is believed: it must be refused."""


class Said(NamedTuple):
    """What metadata says."""

    highest: int
    """The last offset that it speaks of."""
    incomplete: tuple[tuple[int, int], ...]
    """First and last of each range that is not complete, apart from each other."""


def read(metadata: str, base: int, log_end: int | None) -> Said:
    """Return what the metadata of a commit at `base` says.

    Raises:
        NoMapError: it must not be believed.
    """
    if not metadata:
        return Said(base - 1, ())
    content = _base64(metadata)
    magic, body = content[0], content[1:]
    if magic not in _BITSETS and magic not in _RUNS:
        raise NoMapError("first byte")
    if magic in _PACKED:
        body = _unpack(body)
    if magic in _BITSETS:
        span, states = _bits(body, _BITSETS[magic])
    else:
        span, states = _runs(body, _RUNS[magic])
    if span > max(0, (OFFSET_MAX if log_end is None else log_end) - base):
        raise NoMapError("outside of the log")
    return Said(base + span - 1, _ranges(states, base))


def _ranges(states: Iterator[tuple[int, bool]], base: int) -> tuple[tuple[int, int], ...]:
    incomplete: list[tuple[int, int]] = []
    total, position = 0, base
    for count, complete in states:
        if count and not complete:
            if incomplete and incomplete[-1][1] + 1 == position:
                incomplete[-1] = (incomplete[-1][0], position + count - 1)
            else:
                incomplete.append((position, position + count - 1))
            total += count
            if len(incomplete) > RANGES_MAX or total > INCOMPLETE_MAX:
                raise NoMapError("more than is believed")
        position += count
    return tuple(incomplete)


def _base64(text: str) -> bytes:
    if len(text) > CHARACTERS_MAX:
        raise NoMapError("length")
    if len(text) % 4:
        raise NoMapError("a piece of four characters")
    padding = 2 if text.endswith("==") else 1 if text.endswith("=") else 0
    content = bytearray()
    held = bits = 0
    for character in text[: len(text) - padding]:
        value = _DIGITS.get(character)
        if value is None:
            raise NoMapError("no digit")
        held, bits = (held << 6 | value) & 0xFFFF, bits + 6
        if bits >= 8:
            bits -= 8
            content.append(held >> bits & 0xFF)
    if bits != 2 * padding or held & ((1 << bits) - 1):
        raise NoMapError("bits left over")
    return bytes(content)


def _unpack(packed: bytes) -> bytes:
    if _frame_length(packed) != len(packed):
        raise NoMapError("bytes after the frame")
    reader = _unpacker.stream_reader(io.BytesIO(packed), read_across_frames=False)
    try:
        body = reader.read(UNPACKED_MAX + 1)
    except zstandard.ZstdError as error:
        raise NoMapError("frame") from error
    if len(body) > UNPACKED_MAX:
        raise NoMapError("length when unpacked")
    return body


def _frame_length(packed: bytes) -> int:
    """Return where the frame ends, from its headers (RFC 8878, section 3.1.1)."""
    if packed[:4] != b"\x28\xb5\x2f\xfd" or len(packed) < 5:
        raise NoMapError("no frame")
    descriptor = packed[4]
    single_segment = descriptor >> 5 & 1
    content_size = (single_segment, 2, 4, 8)[descriptor >> 6]
    position = 5 + (1 - single_segment) + (0, 1, 2, 4)[descriptor & 3] + content_size
    last = False
    while not last:
        header = packed[position : position + 3]
        if len(header) < 3:
            raise NoMapError("cut off")
        value = header[0] | header[1] << 8 | header[2] << 16
        last = bool(value & 1)
        position += 3 + (1 if value >> 1 & 3 == 1 else value >> 3)
    return position + (4 if descriptor >> 2 & 1 else 0)


def _number(body: bytes, position: int, width: int) -> int:
    value = 0
    for byte in body[position : position + width]:
        value = value * 256 + byte
    return value - 256**width if value >= 256**width // 2 else value


def _bits(body: bytes, width: int) -> tuple[int, Iterator[tuple[int, bool]]]:
    if len(body) < width:
        raise NoMapError("no count")
    span = _number(body, 0, width)
    if span < 0 or len(body) - width < -(-span // 8):
        raise NoMapError("too few bits")
    return span, _each_bit(body[width:], span)


def _each_bit(bits: bytes, span: int) -> Iterator[tuple[int, bool]]:
    for start in range(0, span, 8):
        byte, left = bits[start >> 3], min(8, span - start)
        if byte in {0, 0xFF}:
            yield left, byte != 0
            continue
        for bit in range(left):
            yield 1, bool(byte & 1 << bit)


def _runs(body: bytes, width: int) -> tuple[int, Iterator[tuple[int, bool]]]:
    if not body or len(body) % width:
        raise NoMapError("a piece of a run")
    if len(body) // width > RUNS_MAX:
        raise NoMapError("more runs than are believed")
    counts = [_number(body, position, width) for position in range(0, len(body), width)]
    if any(count < 0 for count in counts):
        raise NoMapError("a negative run")
    if any(count == 0 for count in counts[1:]) and len(counts) > RUNS_MAX_WITH_ZEROS:
        raise NoMapError("more runs than are believed, some of nothing")
    return sum(counts), ((count, bool(index % 2)) for index, count in enumerate(counts))
