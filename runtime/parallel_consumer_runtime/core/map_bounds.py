"""How long a partition's map may become before nothing new is handed out above it. Pure.

Keeps: back-pressure acts before a commit's metadata would outgrow what the brokers take, not after.
"""

import math
import sys
from typing import NamedTuple

from parallel_consumer_runtime.core.ledger import Ledger
from parallel_consumer_runtime.offsets.maps import RANGES_MAX

METADATA_SIZE_MAX = 4096
"""Characters: the brokers' default of offset.metadata.max.bytes."""
SPAN_MAX = RANGES_MAX * 2 * 7 // 8
"""Offsets of which every other may be missing: a map of so many ranges is still read back, with room for what is in flight."""


class MapBounds(NamedTuple):
    """A map with more gaps than `gaps` and a wider span than `span` is nearly full."""

    gaps: int
    span: int
    reach: float = math.inf
    """How far above its lowest incomplete offset a partition hands out, whatever its map is like."""

    def hold(self, offset: int, ledger: Ledger) -> bool:
        """Return whether an offset that was delivered must wait; asked when there are more gaps than `gaps`."""
        return offset > ledger.highest and (ledger.span > self.span or offset - ledger.lowest >= self.reach)

    def free(self, offset: int, ledger: Ledger) -> bool:
        """Return whether an offset that was held back may go on: inside the map, or above one that is half empty by now."""
        if offset <= ledger.highest:
            return True
        half_empty = ledger.gaps <= self.gaps // 2 or ledger.span <= self.span // 2
        return half_empty and offset - ledger.lowest < self.reach


NO_MAP = MapBounds(sys.maxsize, sys.maxsize)
"""Nothing is committed."""


def map_bounds(metadata_max: int = METADATA_SIZE_MAX) -> MapBounds:
    """Return the bounds of a map that is committed in so many characters.

    A gap costs two runs of 4 bytes, 10.7 characters as Base64; six offsets of a bit set cost one. A sixteenth as many gaps, or
    3.9 times as many offsets, take two thirds of the characters; the rest is room for what is in flight. A wide map full of
    gaps ends sooner, where more ranges than are believed would begin.
    """
    return MapBounds(metadata_max // 16, min(metadata_max * 125 // 32, SPAN_MAX))


def fitting_bounds(metadata_max: int = METADATA_SIZE_MAX) -> MapBounds:
    """Return bounds with which the map always fits, whatever is in flight: where a cut map would let results be seen twice.

    4.5 offsets a character as a bit set, of the 6 that there are, leave room for its head; and no more gaps than are believed.
    """
    return MapBounds(0, sys.maxsize, min(metadata_max * 9 // 2, 2 * RANGES_MAX))
