"""The RunLength body: alternating counts, the first counting incomplete offsets, the last always written."""

import struct
from collections.abc import Sequence

from parallel_consumer_runtime.offsets.errors import BodyError
from parallel_consumer_runtime.offsets.maps import OffsetMap, from_runs

RUN_MAX_V1 = 0x7FFF
RUN_MAX_V2 = 0x7FFF_FFFF


def pack(runs: Sequence[int], count_format: str) -> bytes:
    """Return the body; `count_format` is `h` for v1 and `i` for v2."""
    return struct.pack(f">{len(runs)}{count_format}", *runs)


def unpack(body: bytes, base: int, count_format: str) -> OffsetMap:
    """Return the map.

    Raises:
        BodyError: no run, a piece of a run, or a negative one.
    """
    size = struct.calcsize(count_format)
    if not body or len(body) % size:
        msg = f"run lengths of {size} bytes cannot fill {len(body)} bytes"
        raise BodyError(msg)
    runs = list(struct.unpack(f">{len(body) // size}{count_format}", body))
    if min(runs) < 0:
        msg = f"a run of {min(runs)} offsets"
        raise BodyError(msg)
    return from_runs(base, runs)
