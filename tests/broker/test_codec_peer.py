"""The codec against Confluent's Parallel Consumer itself: what one writes, the other reads as the same map."""

import itertools
import random
from collections import Counter
from collections.abc import Callable

import pytest

from parallel_consumer_runtime.offsets import (
    Encoding,
    EncodingError,
    EnvelopeError,
    OffsetMap,
    decode,
    encode,
    encode_as,
    encode_within,
)
from parallel_consumer_runtime.offsets.codec import METADATA_MAX
from tests.support.java_consumer import java_decode, java_encode
from tests.support.kafka import why_unavailable

MAPS = 500
SPAN_MAX = 60_000
SEED = 20_260_101
METADATA_SIZE_MAX = 3_072


@pytest.fixture(autouse=True)
def _java() -> None:
    """These tests need no broker, only what it runs on."""
    if reason := why_unavailable():
        pytest.skip(reason)


def random_maps(seed: int) -> list[OffsetMap]:
    """Return maps of every size and density that is believed, a tenth of the full span, some ending at an incomplete offset."""
    chance = random.Random(seed)
    maps: list[OffsetMap] = []
    for number in range(MAPS):
        span = SPAN_MAX if number % 10 == 0 else round(SPAN_MAX ** chance.random())
        base = chance.choice([0, chance.randrange(1_000), chance.randrange(1 << 40)])
        cuts = min(span, 2 * round((SPAN_MAX // 10) ** chance.random()) - chance.randrange(2))
        edges = [0, *sorted(chance.sample(range(1, span), cuts - 1 if cuts else 0)), span] if span > 1 else [0, 1]
        first = chance.random() < 0.1  # otherwise the base is incomplete, as in a commit
        runs = [(base + low, base + high - 1) for low, high in itertools.pairwise(edges)]
        maps.append(OffsetMap(base, base + span - 1, tuple(runs[int(first) :: 2])))
    return maps


def ours(offsets: OffsetMap) -> dict[str, str]:
    """Return our metadata in each encoding that can hold the map."""
    found: dict[str, str] = {}
    for encoding in Encoding:
        try:
            found[encoding.name] = encode_as(offsets, encoding)
        except EncodingError:
            continue
    return found


@pytest.mark.proves(7)
def test_what_java_writes_is_read_here_as_the_same_map(figure: Callable[[object], None]) -> None:
    """Every encoding of every map; the plain ones are the same bytes, and our choices are as short."""
    maps = random_maps(SEED)
    read: Counter[str] = Counter()
    our_characters = theirs_characters = 0
    for offsets, written in zip(maps, java_encode(maps), strict=True):
        mine = ours(offsets)
        assert set(written.by_encoding) == set(mine)
        for name, metadata in written.by_encoding.items():
            if len(metadata) > METADATA_MAX:
                with pytest.raises(EnvelopeError):
                    decode(metadata, offsets.base)
                continue
            assert decode(metadata, offsets.base, log_end=offsets.highest + 1) == offsets, (name, offsets.base)
            assert name.endswith("ZSTD") or metadata == mine[name], name
            read[name] += 1
        assert decode(written.committed, offsets.base) == offsets
        theirs_characters += len(written.committed)
        our_characters += len(encode(offsets))
    assert len(read) == len(Encoding)
    assert our_characters <= theirs_characters * 1.001  # the two zstd libraries differ by a byte here and there
    figure(f"{len(maps)} maps, {read.total()} payloads of Java read here, 0 differences: {dict(read)}")
    figure(f"the chosen ones take {our_characters} characters, Java's {theirs_characters}")


@pytest.mark.proves(7)
def test_what_is_written_here_is_read_by_java_as_the_same_map(figure: Callable[[object], None]) -> None:
    """Every encoding of every map, the one that we choose, and the part of it that a small limit keeps."""
    maps = random_maps(SEED + 1)
    expected: list[OffsetMap] = []
    lines: list[tuple[int, str]] = []
    written: Counter[str] = Counter()
    for offsets in maps:
        within, kept = encode_within(offsets, METADATA_SIZE_MAX)
        for name, metadata, meant in [
            *((name, metadata, offsets) for name, metadata in ours(offsets).items()),
            ("chosen", encode(offsets), offsets),
            ("cut to fit", within, kept),
        ]:
            expected.append(meant)
            lines.append((offsets.base, metadata))
            written[name] += 1
    for meant, found, (base, metadata) in zip(expected, java_decode(lines), lines, strict=True):
        assert found == meant, (base, metadata[:80])
    assert len(written) == len(Encoding) + 2
    figure(f"{len(maps)} maps, {len(lines)} payloads read by Java, 0 differences: {dict(written)}")
