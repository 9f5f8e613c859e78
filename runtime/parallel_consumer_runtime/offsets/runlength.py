"""The RunLength body: alternating counts, the first counting incomplete offsets, the last always written."""

import struct
from collections.abc import Sequence

from parallel_consumer_runtime.offsets.errors import BodyError
from parallel_consumer_runtime.offsets.maps import RANGES_MAX, OffsetMap, from_runs

RUN_MAX_V1 = 0x7FFF
RUN_MAX_V2 = 0x7FFF_FFFF


def pack(runs: Sequence[int], count_format: str) -> bytes:
    """Return the body; `count_format` is `h` for v1 and `i` for v2."""
    return struct.pack(f">{len(runs)}{count_format}", *runs)


def unpack(body: bytes, base: int, count_format: str, span_max: int) -> OffsetMap:
    """Return the map.

    Raises:
        BodyError: no run, a piece of a run, a negative one, too many, or more than `span_max` offsets in all.
    """
    size = struct.calcsize(count_format)
    if not body or len(body) % size:
        msg = f"run lengths of {size} bytes cannot fill {len(body)} bytes"
        raise BodyError(msg)
    if len(body) // size > 2 * RANGES_MAX + 1:
        msg = f"{len(body) // size} runs, of which {2 * RANGES_MAX + 1} are believed"
        raise BodyError(msg)
    runs = list(struct.unpack(f">{len(body) // size}{count_format}", body))
    if min(runs) < 0:
        msg = f"a run of {min(runs)} offsets"
        raise BodyError(msg)
    if sum(runs) > span_max:
        msg = f"runs of {sum(runs)} offsets, where the log has {span_max}"
        raise BodyError(msg)
    return from_runs(base, runs)
