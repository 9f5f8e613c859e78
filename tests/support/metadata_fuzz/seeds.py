"""What the fuzzer begins with: metadata of every kind, bad ones made by hand, and every input that once broke something.

`kept.txt` has one input a line, in hexadecimal, with what it was after a `#`; what breaks something is appended to it.
"""

import base64
import struct
from pathlib import Path

import zstandard

from parallel_consumer_runtime.offsets import Encoding, EncodingError, OffsetMap, encode_as
from tests.support.metadata_fuzz.inputs import Kind, data, repeated

KEPT = Path(__file__).parent / "kept.txt"
MAPS = (
    OffsetMap(0, 10, ((0, 0), (4, 4), (6, 8), (10, 10))),
    OffsetMap(100, 103, ((100, 100), (102, 102))),
    OffsetMap(7, 7 + 40_000, ((7, 7), (9, 1_000))),
    OffsetMap(1, 600, tuple((offset, offset) for offset in range(1, 600, 2))),
    OffsetMap(0, 30_000, tuple((offset, offset + 9) for offset in range(0, 30_000, 200))),
    OffsetMap(1 << 53, (1 << 53) + 9),
)
JAVA = (
    *("bAALLgIA", "bwAAAAsuAgA=", "bgABAAMAAQABAAMAAQAB", "ZQAAAAEAAAADAAAAAQAAAAEAAAADAAAAAQAAAAE="),
    *("bAAIrAA=", "bwAAAAisAA==", "bgACAAIAAQABAAEAAQ==", "ZQAAAAIAAAACAAAAAQAAAAEAAAABAAAAAQ=="),
    *("ZQAAAAEAAMNL", "bAAECgA=", "bwAAAAQKAA==", "bgABAAEAAQAB", "ZQAAAAEAAAABAAAAAQAAAAE="),
)
"""What Confluent's Parallel Consumer committed."""
TEXTS = ("", "=", "bAAL\nLgIA", "bAALLgI", "bAALLgIA=", "bAAIrAB=", "bgAC==", "{}", "ü", "A" * 0x8000, "A" * 0x7FFC)
CONTENTS = (
    *(bytes((magic,)) for magic in (0, 1, 2, 0x4C, 0xEE, *b"dDXlonaesJp")),
    *(
        b"l\x00",
        b"l\xff\xff\x00",
        b"l\x00\x11\x00\x00",
        b"o\x7f\xff\xff\xff",
        b"o\x80\x00\x00\x00\x00",
        b"l\x00\x00\x00",
    ),
    *(b"n", b"n\x00", b"n\x00\x01\x00", b"n\x00\x03\xff\xff", b"e\x00\x00\x00\x01\x00", b"e\x7f\xff\xff\xff" * 3),
    *(
        b"n\x00\x00\x00\x00\x00\x00\x00\x04",
        b"n\x00\x02\x00\x00\x00\x03\x00\x04",
        b"n\x00\x00\x00\x03\x00\x00\x00\x02\x00\x01",
    ),
    b"l\x00\x03\xff\xff\xff",
)


def seeds() -> list[bytes]:
    """Return the fuzzer's bytes of each."""
    found = [data(Kind.TEXT, text.encode("latin-1")) for text in (*TEXTS, *JAVA)]
    for content in CONTENTS:
        found += [data(Kind.CONTENT, content), data(Kind.CONTENT, content, 100, 11), data(Kind.PACKED, content)]
    for known in MAPS:
        for encoding in Encoding:
            try:
                content = base64.b64decode(encode_as(known, encoding))
            except EncodingError:
                continue
            found.append(data(Kind.CONTENT, content, known.base))
            found.append(data(Kind.CONTENT, content, known.base, 11))
            if not encoding.value.packed:
                found.append(data(Kind.PACKED, bytes((ord(_packed(encoding)),)) + content[1:], known.base, 1 << 20))
    found += [data(Kind.CONTENT, content) for content in _frames()]
    return [*found, *kept()]


def edges() -> list[bytes]:
    """Return the fuzzer's bytes of what is slowest to read. Judged once: their offspring would take most of the time."""
    return [
        data(Kind.REPEATED, content, base, length)
        for content in _floods()
        for base, length in ((0, None), (1 << 53, 1 << 20))
    ]


def kept() -> list[bytes]:
    """Return the inputs that once broke something, or led where no other did."""
    lines = (line.partition("#")[0].strip() for line in KEPT.read_text().splitlines())
    return [bytes.fromhex(line) for line in lines if line]


def keep(content: bytes, what: str) -> bool:
    """Append an input that broke something. Return False when it is there already."""
    if content in kept():
        return False
    with KEPT.open("a") as file:
        file.write(f"{content.hex()}  # {what.splitlines()[0][:200] if what else 'broke something'}\n")
    return True


def _packed(encoding: Encoding) -> str:
    return {Encoding.BITSET_V1: "a", Encoding.BITSET_V2: "s", Encoding.RUNLENGTH_V1: "J", Encoding.RUNLENGTH_V2: "p"}[
        encoding
    ]


def _frames() -> list[bytes]:
    """Return packed contents that are wrong only as frames, or nearly."""
    frame = zstandard.ZstdCompressor(write_content_size=False).compress(b"\x00\x01\x00\x02" * 9)
    sized = zstandard.ZstdCompressor(write_content_size=True, write_checksum=True).compress(b"\x00\x01\x00\x02" * 9)
    skippable = b"\x50\x2a\x4d\x18" + struct.pack("<I", 3) + b"abc"
    small = b"\x28\xb5\x2f\xfd\x00\x58"
    return [
        b"J" + each
        for each in (
            *(frame, sized, frame[:-1], frame + b"\x00", frame + frame, frame + skippable, skippable + frame),
            *(sized[:-1] + b"\x00", small + b"\x00\x00\x00" * 8_000 + b"\x01\x00\x00"),
            *(small + b"\x0a\x00\x00\x01" * 6_000 + b"\x01\x00\x00", small + b"\x02\x00\x10\x00" * 9 + b"\x01\x00\x00"),
        )
    ]


def _floods() -> list[bytes]:
    """Return contents at the edge of what is believed: the slowest to read."""
    full = 11  # three patterns 2,048 times: as many ranges as are believed
    return [
        repeated("s", 14, struct.pack(">i", 1 << 14), b"\xaa"),
        repeated("s", full, struct.pack(">i", 6_144 * 8), b"\xef\xef\xef"),
        repeated("s", full, struct.pack(">i", 6_144 * 64), b"\xff\xff\xff\xfe\xff\xff\xff\xff" * 3),
        repeated("s", full, struct.pack(">i", 6_144 * 64), b"\xfe\xff\xff\xff\xff\xff\xff\x7f" * 3),
        repeated("o", 12, struct.pack(">i", 1 << 15), b"\xef"),
        repeated("o", 13, struct.pack(">i", 1 << 16), b"\x55"),
        repeated("a", 12, struct.pack(">h", 0x7FFF), b"\xaa"),
        repeated("a", 12, struct.pack(">h", 0x7FFF), b"\xee"),
        repeated("p", full, b"", b"\x00\x00\x00\x01" * 6),
        repeated("p", full, b"", b"\x00\x00\x00\x0f\x7f\xff\xff\xff" * 3),
        repeated("p", full, b"", b"\x00\x00\x00\x01\x00\x00\x00\x00" * 3),
        repeated("p", 12, b"", b"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x01"),
        repeated("J", full, b"", b"\x00\x01" * 6),
        repeated("J", full, b"\x00\x00\x00\x01", b"\x00\x01" * 6),
        repeated("J", full, b"", b"\x00\x0f\x00\x00" * 3),
        repeated("n", 12, b"", b"\x00\x01\x00\x01"),
        repeated("e", 11, b"", b"\x00\x00\x00\x02\x00\x00\x00\x01"),
        repeated("J", 15, b"", b"\x00\x00"),
    ]
