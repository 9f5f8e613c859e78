"""How long a partition's map may become before nothing new is handed out above it. Pure.

Keeps: back-pressure acts before a commit's metadata would outgrow what the brokers take, not after.
"""

from typing import NamedTuple

from parallel_consumer_runtime.offsets.maps import RANGES_MAX

METADATA_MAX = 4096
"""Characters: the brokers' default of offset.metadata.max.bytes."""
SPAN_MAX = RANGES_MAX * 2 * 7 // 8
"""Offsets of which every other may be missing: a map of so many ranges is still read back, with room for what is in flight."""


class MapBounds(NamedTuple):
    """A map with more gaps and a wider span than these is nearly full."""

    gaps: int
    span: int


def map_bounds(metadata_max: int = METADATA_MAX) -> MapBounds:
    """Return the bounds of a map that is committed in so many characters.

    A gap costs two runs of 4 bytes, 10.7 characters as Base64; six offsets of a bit set cost one. A sixteenth as many gaps, or
    3.9 times as many offsets, take two thirds of the characters; the rest is room for what is in flight. A wide map full of
    gaps ends sooner, where more ranges than are believed would begin.
    """
    return MapBounds(metadata_max // 16, min(metadata_max * 125 // 32, SPAN_MAX))


MAP_GAPS_MAX, MAP_SPAN_MAX = map_bounds()
