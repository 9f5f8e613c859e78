"""What must hold for every input: only the typed error, never a false "complete", 5 ms of processor time.

The codec must say exactly what the reference says, and refuse exactly what it refuses; a ledger made of the map must
call no other offset complete.
"""

import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from itertools import accumulate

from parallel_consumer_runtime.core import Ledger
from parallel_consumer_runtime.offsets import OffsetMap, OffsetMetadataError, decode
from tests.support.metadata_fuzz.inputs import Case
from tests.support.metadata_fuzz.reference import NoMapError, Said, read

TIME_MAX_S = 0.005
REPEATS = 40
"""Of an input that seems slow. The best counts: other processes and the garbage collector make a run slower, never faster."""
REPEATS_AT_ONCE = 8
PAUSE_S = 0.02
"""Between the later ones, so that they do not all meet the same neighbour."""
LEDGER_MAX = 4_096
"""Incomplete offsets of a map whose ledger is looked at; larger ones would take most of the time."""
WHOLE_SPAN_MAX = 200
"""Offsets of a map whose ledger is asked for each; of a longer one it is asked at the ends of its ranges."""
RANGES_ASKED_MAX = 32

Decode = Callable[[Case], OffsetMap]


class BrokenError(AssertionError):
    """Something does not hold; the message says what."""


class Tally:
    """What inputs came to."""

    def __init__(self) -> None:
        self.inputs = 0
        self.by_outcome: Counter[str] = Counter()
        self.slowest_s = 0.0


def ours(case: Case) -> OffsetMap:
    """Read a case with the codec."""
    return decode(case.metadata, case.base, log_end=case.log_end)


def check(case: Case, tally: Tally, decode_case: Decode = ours) -> None:
    """Judge one input.

    Raises:
        BrokenError: what does not hold.
    """
    tally.inputs += 1
    found: OffsetMap | None = None
    outcome = "map"
    began = time.thread_time()
    try:
        found = decode_case(case)
    except OffsetMetadataError as error:
        outcome = type(error).__name__
    except BaseException as error:
        msg = f"raised {error!r}, which is not the typed error"
        raise BrokenError(msg) from error
    took = time.thread_time() - began
    if took > min(tally.slowest_s, TIME_MAX_S):
        took = _fastest(case, decode_case, took)
        tally.slowest_s = max(tally.slowest_s, took)
        if took > TIME_MAX_S:
            msg = f"took {took * 1000:.1f} ms of processor time, {REPEATS} times"
            raise BrokenError(msg)
    tally.by_outcome[outcome] += 1
    try:
        said = read(case.metadata, case.base, case.log_end)
    except NoMapError as error:
        if found is not None:
            msg = f"believed what is no map: {error}"
            raise BrokenError(msg) from error
        return
    if found is None:
        msg = f"refused ({outcome}) what is a map of {said.highest - case.base + 1} offsets"
        raise BrokenError(msg)
    if (found.base, found.highest, found.incomplete) != (case.base, *said):
        msg = f"says another map than the bytes: {str(found)[:200]}, not {str(said)[:200]}"
        raise BrokenError(msg)
    if sum(last - first + 1 for first, last in said.incomplete) <= LEDGER_MAX:
        _check_ledger(found, said)


class Pace:
    """How much slower than at its best this machine is now: the same work, measured again beside what seems slow."""

    def __init__(self) -> None:
        self.best_s = min(self._work() for _ in range(50))

    def slowdown(self) -> float:
        """Return 1 at the best that was ever seen, 2 when the same work takes twice as long."""
        now_s = self._work()
        self.best_s = min(self.best_s, now_s)
        return now_s / self.best_s

    @staticmethod
    def _work() -> float:
        began = time.thread_time()
        ends = list(accumulate(range(1 << 40, (1 << 40) + 6_000)))
        tuple(zip(ends[::2], ends[1::2], strict=True))
        return time.thread_time() - began


_pace = Pace()


def _fastest(case: Case, decode_case: Decode, took_s: float) -> float:
    """Return the best time of repeats, as it would be if the machine were not slower than at its best meanwhile."""
    best_s = took_s
    slowdown = float("inf")
    for repeat in range(REPEATS):
        slowdown = min(slowdown, _pace.slowdown())
        began = time.thread_time()
        with suppress(OffsetMetadataError):
            decode_case(case)
        best_s = min(best_s, time.thread_time() - began)
        if repeat >= REPEATS_AT_ONCE:
            if best_s < TIME_MAX_S:
                return best_s
            time.sleep(PAUSE_S)
    return best_s / slowdown


def _check_ledger(found: OffsetMap, said: Said) -> None:
    ledger = Ledger(found.base, found.highest, found.incomplete)
    lowest = said.incomplete[0][0] if said.incomplete else max(found.base, said.highest + 1)
    plan = ledger.plan()
    if plan is None or plan[0] != lowest or plan[2] != said.incomplete:
        msg = f"a ledger of {str(said)[:200]} plans to commit {str(plan)[:200]}"
        raise BrokenError(msg)
    gaps = {offset for first, last in said.incomplete for offset in range(first, last + 1)}
    for offset in _asked(found.base, said):
        incomplete = offset > said.highest or offset in gaps
        if ledger.deliver(offset) is not incomplete:
            msg = f"a ledger of {str(said)[:200]} calls offset {offset} {'complete' if incomplete else 'incomplete'}"
            raise BrokenError(msg)


def _asked(base: int, said: Said) -> list[int]:
    if said.highest - base < WHOLE_SPAN_MAX:
        return list(range(base, said.highest + 3))
    ends = {base, said.highest, said.highest + 1}
    for first, last in (*said.incomplete[:RANGES_ASKED_MAX], *said.incomplete[-RANGES_ASKED_MAX:]):
        ends |= {first - 1, first, last, last + 1}
    return sorted(offset for offset in ends if offset >= base)
