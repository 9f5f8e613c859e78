"""The codec: known vectors, round trips in all eight encodings, strictness, and the smallest of the eight."""

import base64
import struct

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from parallel_consumer_runtime import offsets
from parallel_consumer_runtime.offsets import (
    BodyError,
    CompressionError,
    Encoding,
    EncodingError,
    EnvelopeError,
    OffsetMap,
    OffsetMetadataError,
    decode,
    encode,
    encode_as,
    encode_within,
)
from parallel_consumer_runtime.offsets.codec import METADATA_MAX

PLAIN = (Encoding.BITSET_V1, Encoding.BITSET_V2, Encoding.RUNLENGTH_V1, Encoding.RUNLENGTH_V2)
VECTORS = (
    (
        OffsetMap(0, 10, ((0, 0), (4, 4), (6, 8), (10, 10))),
        (
            "bAALLgIA",
            "bwAAAAsuAgA=",
            "bgABAAMAAQABAAMAAQAB",
            "ZQAAAAEAAAADAAAAAQAAAAEAAAADAAAAAQAAAAE=",
        ),
    ),
    (
        OffsetMap(2, 9, ((2, 3), (6, 6), (8, 8))),
        ("bAAIrAA=", "bwAAAAisAA==", "bgACAAIAAQABAAEAAQ==", "ZQAAAAIAAAACAAAAAQAAAAEAAAABAAAAAQ=="),
    ),
    (
        OffsetMap(100, 103, ((100, 100), (102, 102))),
        ("bAAECgA=", "bwAAAAQKAA==", "bgABAAEAAQAB", "ZQAAAAEAAAABAAAAAQAAAAE="),
    ),
)


def from_set(base: int, span: int, incomplete: set[int]) -> OffsetMap:
    """Return the map of a set of incomplete offsets, relative to the base."""
    ranges: list[tuple[int, int]] = []
    for offset in sorted(incomplete):
        if ranges and ranges[-1][1] == base + offset - 1:
            ranges[-1] = (ranges[-1][0], base + offset)
        else:
            ranges.append((base + offset, base + offset))
    return OffsetMap(base, base + span - 1, tuple(ranges))


@st.composite
def maps(draw: st.DrawFn) -> OffsetMap:
    """Maps of every density, built of alternating runs."""
    base = draw(st.integers(0, 2**50))
    longest = draw(st.sampled_from([2, 20, 400, 4_000]))
    runs = draw(st.lists(st.integers(1, longest), min_size=1, max_size=60))
    ranges: list[tuple[int, int]] = []
    position, incomplete = base, draw(st.booleans())
    for run in runs:
        if incomplete:
            ranges.append((position, position + run - 1))
        # A few complete runs are longer than bits can say.
        position += run if incomplete or run < 3_990 else run * 150
        incomplete = not incomplete
    return OffsetMap(base, position - 1, tuple(ranges))


@pytest.mark.proves(7)
@pytest.mark.parametrize(("known", "texts"), VECTORS)
def test_known_vectors(known: OffsetMap, texts: tuple[str, ...]) -> None:
    """What the Java library commits is what is written, and is read back."""
    for encoding, text in zip(PLAIN, texts, strict=True):
        assert encode_as(known, encoding) == text
        assert decode(text, known.base) == known


def test_a_long_run_needs_the_wide_encodings() -> None:
    """50,000 complete offsets above a stuck one fit no 16-bit count."""
    known = OffsetMap(5, 50_000, ((5, 5),))
    assert encode_as(known, Encoding.RUNLENGTH_V2) == "ZQAAAAEAAMNL"
    for encoding in (Encoding.BITSET_V1, Encoding.RUNLENGTH_V1, Encoding.BITSET_V1_ZSTD, Encoding.RUNLENGTH_V1_ZSTD):
        with pytest.raises(EncodingError, match=encoding.name):
            encode_as(known, encoding)


@pytest.mark.proves(7)
@settings(max_examples=20_000, deadline=None)
@given(maps(), st.sampled_from(list(Encoding)))
def test_round_trips(known: OffsetMap, encoding: Encoding) -> None:
    """Every map comes back from every encoding that can hold it."""
    try:
        text = encode_as(known, encoding)
    except EncodingError:
        text = ""
    if not text or len(text) > METADATA_MAX:
        text = encode(known)
    assert decode(text, known.base, log_end=known.highest + 1) == known


@settings(max_examples=500, deadline=None)
@given(maps())
def test_the_writer_takes_the_smallest(known: OffsetMap) -> None:
    """No other encoding is shorter than the one that is written."""
    sizes: list[int] = []
    for encoding in Encoding:
        try:
            sizes.append(len(encode_as(known, encoding)))
        except EncodingError:
            continue
    assert len(encode(known)) == min(sizes)


@pytest.mark.proves(8)
@settings(max_examples=300, deadline=None)
@given(maps(), st.integers(0, 120))
def test_a_map_that_is_too_long_is_cut_to_what_fits(known: OffsetMap, size_max: int) -> None:
    """What is kept says nothing that the whole does not say, ends at a completed offset, and one range more is too long."""
    text, kept = encode_within(known, size_max)
    assert len(text) <= size_max
    assert decode(text, known.base) == kept
    assert kept == known.cut(kept.highest)
    if kept == known:
        assert text == encode(known)
        return
    assert not any(first <= kept.highest <= last for first, last in known.incomplete)
    ends = [*(first - 1 for first, _ in known.incomplete), known.highest]
    following = next(end for end in ends if end > kept.highest)
    assert len(encode(known.cut(following))) > size_max


@settings(max_examples=3000, deadline=None)
@given(st.binary(max_size=300), st.sampled_from([e.value.magic for e in Encoding] + [0, 1, 2, 0x4C, 0xEE]))
def test_garbage_raises_the_one_error(body: bytes, magic: int) -> None:
    """Whatever the bytes, the outcome is a map or the typed error."""
    try:
        found = decode(base64.b64encode(bytes((magic,)) + body).decode(), 10)
    except OffsetMetadataError:
        return
    assert found.base == 10


@settings(max_examples=1000, deadline=None)
@given(st.text(max_size=100))
def test_text_that_is_no_envelope_raises_the_one_error(text: str) -> None:
    """Another application's metadata is not believed."""
    try:
        decode(text, 0)
    except OffsetMetadataError:
        return


def envelope(magic: str, body: bytes) -> str:
    """Return metadata with any body."""
    return base64.b64encode(magic.encode() + body).decode()


@pytest.mark.parametrize(
    ("metadata", "error"),
    [
        ("not base64!", EnvelopeError),
        ("bAAL\nLgIA", EnvelopeError),
        ("bAALLgI", EnvelopeError),
        ("bAALLgIA=", EnvelopeError),
        ("bAAB_w==", EnvelopeError),
        ("bgAC==", EnvelopeError),
        ("bAAIrAB=", EnvelopeError),
        ("=", EnvelopeError),
        ("A" * 0x8000, EnvelopeError),
        ("ü", EnvelopeError),
        (envelope("L", b"\0\1"), EnvelopeError),
        (envelope("l", b"\0"), BodyError),
        (envelope("l", struct.pack(">h", -1) + b"\0"), BodyError),
        (envelope("l", struct.pack(">h", 17) + b"\0\0"), BodyError),
        (envelope("o", struct.pack(">i", 2**31 - 1)), BodyError),
        (envelope("n", b""), BodyError),
        (envelope("n", b"\0\1\0"), BodyError),
        (envelope("e", b"\0\0\0\1\0"), BodyError),
        (envelope("n", struct.pack(">hh", 3, -1)), BodyError),
        (envelope("p", b"no frame"), CompressionError),
        (envelope("s", zstandard.compress(b"\0" * 100)[:-3]), CompressionError),
        (envelope("s", zstandard.compress(b"\0" * (64 << 20))), CompressionError),
        (envelope("J", zstandard.compress(b"\0\1") + b"\0"), CompressionError),
        (envelope("J", zstandard.compress(b"\0\1") + b"\0" * 64), CompressionError),
        (envelope("J", zstandard.compress(b"\0\1") * 2), CompressionError),
        (envelope("e", struct.pack(">ii", 1, 90)), BodyError),
    ],
)
def test_a_reader_is_strict(metadata: str, error: type[OffsetMetadataError]) -> None:
    """Each way of being wrong has its error; the log here ends at offset 60."""
    with pytest.raises(error):
        decode(metadata, 5, log_end=60)


@pytest.mark.parametrize(
    ("magic", "body"),
    [
        ("s", struct.pack(">i", 1 << 20) + b"\xaa" * (1 << 17)),
        ("a", struct.pack(">h", 0x7FFF) + b"\xaa" * (1 << 18)),
        ("s", struct.pack(">i", 1 << 17) + b"\xaa" * (1 << 14)),
        ("J", b"\0\1" * 12_289),
        ("J", b"\0\1" * 12_291),
        ("J", b"\0\0" * 2_049),
        ("J", b"\0\1" * (1 << 17)),
        ("p", b"\0\0\0\1" * (1 << 17)),
    ],
)
def test_a_few_characters_cannot_stand_for_a_flood(magic: str, body: bytes) -> None:
    """A repeating pattern packs into a line; it is refused by its size or its number of ranges, unbuilt."""
    metadata = envelope(magic, zstandard.compress(body))
    assert len(metadata) < 100
    with pytest.raises(OffsetMetadataError, match=r"bytes when unpacked|are believed"):
        decode(metadata, 0)


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        ("e", 131_072),
        ("o", 131_072),
    ],
)
def test_a_few_characters_cannot_claim_what_no_buffer_held(body: str, kept: int) -> None:
    """Incomplete offsets are records that were buffered: as many as a buffer may hold are believed, not one more."""
    for incomplete, good in ((kept, True), (kept + 1, False)):
        runs, bits = struct.pack(">ii", incomplete, 7), (0x7F << incomplete).to_bytes(incomplete // 8 + 1, "little")
        metadata = envelope(body, runs) if body == "e" else ""
        if body == "o":
            metadata = envelope("s", zstandard.compress(struct.pack(">i", incomplete + 7) + bits + b"\0"))
        if good:
            assert decode(metadata, 5).incomplete == ((5, 5 + kept - 1),)
        else:
            with pytest.raises(BodyError, match="are believed"):
                decode(metadata, 5)


def test_as_many_ranges_as_are_believed_are_read_back() -> None:
    """A map of more ranges is cut to those that a reader believes."""
    known = OffsetMap(0, 199_999, tuple((offset, offset) for offset in range(0, 200_000, 4)))
    text, kept = encode_within(known, 4096)
    assert len(kept.incomplete) == 6_144
    assert decode(text, 0) == kept == known.cut(kept.highest)


def test_as_many_incomplete_offsets_as_are_believed_are_read_back() -> None:
    """A map that calls more offsets incomplete is cut where a reader would stop to believe it."""
    known = OffsetMap(0, 400_000, tuple((first, first + 49_999) for first in range(0, 400_000, 100_000)))
    text, kept = encode_within(known, 4096)
    assert kept == known.cut(199_999)
    assert decode(text, 0) == kept


def test_what_fits_is_kept_whole_and_what_does_not_is_cut() -> None:
    """Ranges in no regular order take more characters than there are; one range more than is kept would not fit."""
    squares = tuple((number * number, number * number) for number in range(2, 400))
    known = OffsetMap(4, 160_000, squares)
    assert encode_within(known, 4096) == (encode(known), known)
    text, kept = encode_within(known, 400)
    assert 300 < len(text) <= 400
    assert decode(text, 4) == kept == known.cut(kept.highest)
    assert len(encode(known.cut(squares[len(kept.incomplete) + 1][0] - 1))) > 400


def test_what_no_encoding_can_count_is_left_out() -> None:
    """More offsets in one run than 31 bits count: what lies below is said, or nothing."""
    beyond = OffsetMap(5, 1 << 32, ((5, 5),))
    with pytest.raises(EncodingError, match="no encoding"):
        encode(beyond)
    assert encode_within(beyond, 4096) == ("", OffsetMap(5, 4))
    known = OffsetMap(5, 1 << 32, ((5, 5), (8, 9)))
    text, kept = encode_within(known, 4096)
    assert kept == known.cut(7)
    assert decode(text, 5) == kept


def test_more_offsets_than_are_read_as_bits_go_as_runs() -> None:
    """What is written is always read: every third range of a long map, as bits, would be the shorter text."""
    pattern = tuple((first, first + 6) for first in range(0, 4_000_000, 1_000))
    known = OffsetMap(0, 3_999_999, pattern)
    assert decode(encode(known), 0) == known


@pytest.mark.parametrize("encoding", Encoding)
def test_the_end_of_the_log_is_a_bound(encoding: Encoding) -> None:
    """A map up to the log's last offset is read, one beyond it is of another log."""
    known = VECTORS[0][0]
    text = encode_as(known, encoding)
    assert decode(text, 0, log_end=11) == known
    for log_end in (10, 0):
        with pytest.raises(BodyError, match="where the log has"):
            decode(text, 0, log_end=log_end)


def test_a_reader_takes_what_it_may() -> None:
    """A zstd frame with a content size, a bit set with more bytes than bits, counts of nothing."""
    plain = base64.b64decode("bAALLgIA")[1:]
    known = VECTORS[0][0]
    assert decode(envelope("a", zstandard.compress(plain)), 0) == known
    assert decode(envelope("l", plain + b"\xff\xff"), 0) == known
    assert decode(envelope("n", struct.pack(">hhhh", 0, 0, 0, 4)), 7) == OffsetMap(7, 10)
    assert decode(envelope("n", struct.pack(">hhhhh", 2, 0, 3, 4, 0)), 7) == OffsetMap(7, 15, ((7, 11),))
    assert decode(envelope("n", struct.pack(">hhhhh", 2, 3, 0, 4, 1)), 7) == OffsetMap(7, 16, ((7, 8), (16, 16)))
    assert decode(envelope("n", struct.pack(">hhhhh", 0, 0, 2, 1, 0)), 7) == OffsetMap(7, 9, ((7, 8),))
    assert decode(envelope("l", b"\0\0\0"), 7) == OffsetMap(7, 6)
    assert decode("", 7) == OffsetMap(7, 6)


def test_nothing_to_say_is_the_empty_text() -> None:
    """A map of nothing is written as nothing."""
    assert encode(OffsetMap(7, 6)) == ""


@pytest.mark.parametrize("ranges", [((5, 4),), ((5, 6), (7, 8)), ((5, 6), (6, 8)), ((4, 6),), ((5, 21),)])
def test_a_map_refuses_ranges_out_of_place(ranges: tuple[tuple[int, int], ...]) -> None:
    """Reversed, touching, overlapping or outside ranges are no map."""
    with pytest.raises(ValueError, match=r"range"):
        OffsetMap(5, 20, ranges)


@pytest.mark.parametrize(("base", "highest"), [(-1, 5), (5, 3)])
def test_a_map_refuses_what_is_no_range_of_offsets(base: int, highest: int) -> None:
    """There are no negative offsets, and no negative counts of them."""
    with pytest.raises(ValueError, match="no range of offsets"):
        OffsetMap(base, highest)


@pytest.mark.parametrize("encoding", Encoding)
def test_a_map_without_a_gap_is_a_map(encoding: Encoding) -> None:
    """Nothing incomplete is said in every encoding."""
    known = OffsetMap(7, 10)
    assert decode(encode_as(known, encoding), 7) == known


def test_a_map_is_cut_inside_a_range_too() -> None:
    """What is said of the offsets that are kept stays as it was."""
    assert OffsetMap(5, 20, ((5, 6), (8, 12), (15, 15))).cut(9) == OffsetMap(5, 9, ((5, 6), (8, 9)))


def test_dense_and_sparse_bit_sets_agree() -> None:
    """Both ways of making the bits give the same bytes."""
    dense = from_set(3, 4000, set(range(0, 4000, 2)))
    sparse = from_set(3, 4000, {0, 17, 3998})
    for known in (dense, sparse):
        assert decode(encode_as(known, Encoding.BITSET_V2), 3) == known


def test_the_public_names_are_these() -> None:
    """`__all__` is what the package offers, and all of it exists."""
    assert sorted(offsets.__all__) == offsets.__all__
    assert all(hasattr(offsets, name) for name in offsets.__all__)
