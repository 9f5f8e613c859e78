"""The RunLength body: alternating counts, the first counting incomplete offsets, the last always written."""

import struct
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate, compress, repeat
from operator import sub

from parallel_consumer_runtime.offsets.errors import BodyError
from parallel_consumer_runtime.offsets.maps import INCOMPLETE_MAX, RANGES_MAX, OffsetMap, from_bounds

RUN_MAX_V1 = 0x7FFF
RUN_MAX_V2 = 0x7FFF_FFFF
RUNS_MAX = 2 * RANGES_MAX + 2
"""A range, and what is complete after it; nothing incomplete first, and what is complete after that."""

RUNS_MAX_WITH_ZEROS = 2048
"""When a run that is not the first counts nothing: nobody writes that, it may be read, and it takes the longest."""


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
    if len(body) // size > RUNS_MAX:
        msg = f"{len(body) // size} runs, of which {RUNS_MAX} are believed"
        raise BodyError(msg)
    runs = struct.unpack(f">{len(body) // size}{count_format}", body)
    if min(runs) < 0:
        msg = f"a run of {min(runs)} offsets"
        raise BodyError(msg)
    if sum(runs) > span_max:
        msg = f"runs of {sum(runs)} offsets, where the log has {span_max}"
        raise BodyError(msg)
    if sum(runs[::2]) > INCOMPLETE_MAX:
        msg = f"{sum(runs[::2])} incomplete offsets, of which {INCOMPLETE_MAX} are believed"
        raise BodyError(msg)
    edges = _edges(runs, base)
    if len(edges) // 2 > RANGES_MAX:
        msg = f"{len(edges) // 2} incomplete ranges, of which {RANGES_MAX} are believed"
        raise BodyError(msg)
    return from_bounds(base, base + sum(runs) - 1, edges[::2], map(sub, edges[1::2], repeat(1)))


def _edges(runs: Sequence[int], base: int) -> list[int]:
    """Return where incomplete becomes complete, or the other way. No loop, which would take several times as long."""
    edges = list(accumulate(runs, initial=base))
    if len(runs) % 2 == 0:
        edges.pop()
    if not runs[0]:
        del edges[:2]
    if 0 in runs[1:]:
        if len(runs) > RUNS_MAX_WITH_ZEROS:
            msg = f"{len(runs)} runs, some of nothing, of which {RUNS_MAX_WITH_ZEROS} are believed"
            raise BodyError(msg)
        # Runs of nothing put several edges in one place: only an odd number of them changes anything.
        places = Counter(edges)
        edges = list(compress(places, map((1).__and__, places.values())))
    return edges
