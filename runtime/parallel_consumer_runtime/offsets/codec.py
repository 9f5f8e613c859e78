"""Metadata to maps and back: the eight encodings of Confluent's Parallel Consumer, in its envelope.

The envelope is standard Base64 of one magic byte and a body; four encodings are plain, four are the same in one zstd
frame without a content size. A reader is strict: whatever is not exactly a map raises `OffsetMetadataError`, and the
records are handled again. A writer takes the smallest.
"""

import base64
import binascii
from enum import Enum
from typing import NamedTuple

import zstandard

from parallel_consumer_runtime.offsets import bitset, runlength
from parallel_consumer_runtime.offsets.errors import CompressionError, EnvelopeError
from parallel_consumer_runtime.offsets.maps import OffsetMap, within_bounds

METADATA_MAX = 0x7FFF
"""Characters; what a string of Kafka's protocol can hold, so that no broker, however it is configured, keeps more."""
UNPACKED_MAX_BYTES = 4 * runlength.RUNS_MAX
"""Bound of a body, packed or not: every run that is believed in its widest form, or half a million offsets as bits."""
OFFSET_MAX = (1 << 63) - 1
ZSTD_FRAME_MIN_BYTES = 9
"""Magic (4), header (2), one empty block's header (3): a body no longer than this cannot shrink."""
_ZSTD_LEVEL = 3


class Form(NamedTuple):
    """How one encoding is written."""

    magic: int
    bits: bool
    letter: str
    """struct's letter for counts: h (16 bits) or i (32 bits)."""
    packed: bool


class Encoding(Enum):
    """The eight encodings; the value is how each is written."""

    BITSET_V1 = Form(ord("l"), bits=True, letter="h", packed=False)
    BITSET_V2 = Form(ord("o"), bits=True, letter="i", packed=False)
    RUNLENGTH_V1 = Form(ord("n"), bits=False, letter="h", packed=False)
    RUNLENGTH_V2 = Form(ord("e"), bits=False, letter="i", packed=False)
    BITSET_V1_ZSTD = Form(ord("a"), bits=True, letter="h", packed=True)
    BITSET_V2_ZSTD = Form(ord("s"), bits=True, letter="i", packed=True)
    RUNLENGTH_V1_ZSTD = Form(ord("J"), bits=False, letter="h", packed=True)
    RUNLENGTH_V2_ZSTD = Form(ord("p"), bits=False, letter="i", packed=True)


_BY_MAGIC = {encoding.value.magic: encoding.value for encoding in Encoding}
_PLAIN = [encoding.value for encoding in Encoding if not encoding.value.packed]
_PACKED = {(form.bits, form.letter): form.magic for form in _BY_MAGIC.values() if form.packed}


class EncodingError(ValueError):
    """The encoding cannot hold the map: its counts are too small."""


def encode(offsets: OffsetMap) -> str:
    """Return the shortest metadata for a map; empty when it says nothing above its base. Any thread.

    Raises:
        EncodingError: when no encoding can hold it: a run of more than 31 bits.
    """
    if offsets.span == 0:
        return ""
    runs = offsets.runs()
    bodies = {form: _body(offsets, runs, form) for form in _PLAIN if _fits(offsets, runs, form)}
    if not bodies:
        msg = f"no encoding can hold a map of {offsets.span} offsets with runs up to {max(runs)}"
        raise EncodingError(msg)
    # v2 only where v1 cannot: the same content in wider counts.
    for bits in (True, False):
        narrow, wide = (next(f for f in _PLAIN if f.bits is bits and f.letter == letter) for letter in "hi")
        if narrow in bodies and bits:
            bodies.pop(wide, None)
    best = min((bytes((form.magic,)) + body for form, body in bodies.items()), key=len)
    for form, body in bodies.items():
        if len(body) > ZSTD_FRAME_MIN_BYTES:
            packed = bytes((_PACKED[form.bits, form.letter],)) + _compress(body)
            if len(packed) < len(best):
                best = packed
    return base64.b64encode(best).decode()


def encode_as(offsets: OffsetMap, encoding: Encoding) -> str:
    """Return the metadata in one encoding. Any thread.

    Raises:
        EncodingError: when it cannot hold the map.
    """
    form, runs = encoding.value, offsets.runs()
    if not _fits(offsets, runs, form):
        msg = f"{encoding.name} cannot hold a map of {offsets.span} offsets with runs up to {max(runs)}"
        raise EncodingError(msg)
    body = _body(offsets, runs, form)
    return base64.b64encode(bytes((form.magic,)) + (_compress(body) if form.packed else body)).decode()


def encode_within(offsets: OffsetMap, size_max: int) -> tuple[str, OffsetMap]:
    """Return metadata of at most `size_max` characters, and the part of the map that it keeps. Any thread.

    A map that is too long, or that no reader would believe, is cut to a prefix that ends at a completed offset: nothing
    is said of what lies above it, so its records may be handled twice and are never lost.
    """
    size_max = min(size_max, METADATA_MAX)
    believed = within_bounds(offsets.incomplete)
    if believed == len(offsets.incomplete):
        metadata = _encode_within(offsets, size_max)
        if metadata is not None:
            return metadata, offsets
    # Candidates end where an incomplete range begins: everything below it is decided.
    ends = [first - 1 for first, _ in offsets.incomplete[: believed + 1] if first > offsets.base]
    best: tuple[str, OffsetMap] = ("", OffsetMap(offsets.base, offsets.base - 1))
    low, high = 0, len(ends) - 1
    while low <= high:
        middle = (low + high) // 2
        kept = offsets.cut(ends[middle])
        metadata = _encode_within(kept, size_max)
        if metadata is not None:
            best, low = (metadata, kept), middle + 1
        else:
            high = middle - 1
    return best


def decode(metadata: str, base: int, *, log_end: int | None = None) -> OffsetMap:
    """Return what metadata committed at `base` says; a map of nothing for empty metadata. Any thread.

    Args:
        metadata: as the broker keeps it.
        base: the committed offset.
        log_end: the high watermark, when known: a map that reaches beyond it is of another log.

    Raises:
        OffsetMetadataError: it is not exactly a map; nothing else is raised.
    """
    if not metadata:
        return OffsetMap(base, base - 1)
    if len(metadata) > METADATA_MAX:
        msg = f"{len(metadata)} characters, where Kafka holds {METADATA_MAX}"
        raise EnvelopeError(msg)
    try:
        text = metadata.encode("ascii")
        raw = base64.b64decode(text)
    except (binascii.Error, ValueError) as error:
        msg = f"not Base64: {error}"
        raise EnvelopeError(msg) from error
    # Python's reader overlooks much, and differently from version to version; what it overlooked is not written again.
    if base64.b64encode(raw) != text:
        msg = "not Base64 as it is written: other characters, line breaks, padding or bits left over"
        raise EnvelopeError(msg)
    form = _BY_MAGIC.get(raw[0])
    if form is None:
        msg = f"unknown first byte 0x{raw[0]:02x}"
        raise EnvelopeError(msg)
    body = _decompress(raw[1:]) if form.packed else raw[1:]
    span_max = max(0, (OFFSET_MAX if log_end is None else log_end) - base)
    if form.bits:
        return bitset.unpack(body, base, ">" + form.letter, span_max)
    return runlength.unpack(body, base, form.letter, span_max)


def _encode_within(offsets: OffsetMap, size_max: int) -> str | None:
    try:
        metadata = encode(offsets)
    except EncodingError:
        return None
    return metadata if len(metadata) <= size_max else None


def _fits(offsets: OffsetMap, runs: list[int], form: Form) -> bool:
    if form.bits:
        size = bitset.size_bytes(offsets.span, ">" + form.letter)
        # As bits, no more than is read back: a longer map goes as runs.
        return size <= UNPACKED_MAX_BYTES and (form.letter == "i" or offsets.span <= bitset.SPAN_MAX_V1)
    return max(runs) <= (runlength.RUN_MAX_V1 if form.letter == "h" else runlength.RUN_MAX_V2)


def _body(offsets: OffsetMap, runs: list[int], form: Form) -> bytes:
    return bitset.pack(offsets, ">" + form.letter) if form.bits else runlength.pack(runs, form.letter)


def _compress(body: bytes) -> bytes:
    # As a stream: told the size beforehand, zstd takes smaller tables, and frames come out 1 % longer.
    stream = zstandard.ZstdCompressor(level=_ZSTD_LEVEL, write_content_size=False, write_checksum=False).compressobj()
    return stream.compress(body) + stream.flush()


def _decompress(packed: bytes) -> bytes:
    unpacker = zstandard.ZstdDecompressor(max_window_size=1 << 23).decompressobj(read_across_frames=False)
    try:
        body = bytearray()
        # In pieces, so that a small frame that unpacks to a great one is stopped early.
        for start in range(0, len(packed), 64):
            if unpacker.eof:
                msg = "bytes after the zstd frame"
                raise CompressionError(msg)
            body += unpacker.decompress(packed[start : start + 64])
            if len(body) > UNPACKED_MAX_BYTES:
                msg = f"more than {UNPACKED_MAX_BYTES} bytes when unpacked"
                raise CompressionError(msg)
    except zstandard.ZstdError as error:
        msg = f"not a zstd frame: {error}"
        raise CompressionError(msg) from error
    if not unpacker.eof:
        msg = "the zstd frame is cut off"
        raise CompressionError(msg)
    if unpacker.unused_data:
        msg = "bytes after the zstd frame"
        raise CompressionError(msg)
    return bytes(body)
