"""A long load with a fault every 30 s: what a process holds does not grow, and the guarantees hold over all of it."""

import itertools
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.endangered import Endangered
from tests.support.group_run import GroupRun, lasting, steady_spec
from tests.support.process_resources import MIB, Resources, resources, slope_per_s
from tests.support.scale import released, scaled

pytestmark = pytest.mark.acceptance

SOAK_S = scaled(180.0, 1800.0)
FAULT_EVERY_S = 30.0
RESUMED_MAX_S = 30.0
GROWTH_MAX = 8 * MIB
"""In the two minutes after the first of a run that is too short for a slope: what a reconnect's buffers may add."""
SLOPE_MAX = MIB / 600
THREADS_MORE = 2
DESCRIPTORS_MORE = 8
"""A broker that is back may be connected to twice for a moment."""


def _kill(run: GroupRun, _: Endangered) -> None:
    with run.excused("killing", run.members.life(1)):
        run.members.kill(1)
    run.members.start(1)


def _restart(run: GroupRun, _: Endangered) -> None:
    assert run.members.terminate(2) == 0
    run.members.start(2)


def _resets(_: GroupRun, hurt: Endangered) -> None:
    hurt.proxy.reset()


def _half_open(_: GroupRun, hurt: Endangered) -> None:
    hurt.proxy.half_open()


def _bounce(run: GroupRun, _: Endangered) -> None:
    run.bounce()


def _cut(_: GroupRun, hurt: Endangered) -> None:
    hurt.proxy.cut()
    lasting(5.0)
    hurt.proxy.heal()


FAULTS: list[Callable[[GroupRun, Endangered], None]] = [_kill, _resets, _bounce, _restart, _cut, _half_open]


@pytest.mark.timeout(scaled(400, 2600))
@pytest.mark.proves(24)
def test_a_soak_with_faults_grows_nothing(
    endangered: Endangered, endangered_topic: str, group: str, tmp_path: Path, figure: Callable[[object], None]
) -> None:
    """Nothing lost or repeated but after the kills; memory, threads and descriptors of the member that lives on stay."""
    spec = steady_spec(endangered.proxy.bootstrap, endangered_topic, group)
    run = GroupRun(endangered.broker, endangered_topic, group, tmp_path, spec=spec)
    samples: list[Resources] = []
    fenced = 0
    with run.load():
        pid, began = run.members.process(0).pid, time.monotonic()
        for number, fault in enumerate(itertools.cycle(FAULTS), 1):
            if number * FAULT_EVERY_S > SOAK_S:
                break
            while (at_s := time.monotonic() - began) < (number - 0.5) * FAULT_EVERY_S:
                samples.append(resources(pid, at_s))
                lasting(1.0)
            since_ns = time.monotonic_ns()
            fault(run, endangered)

            def tend(since_ns: int = since_ns) -> None:
                # A broker that was killed may know a static member by the id of its life before, and fences the present one.
                nonlocal fenced
                fenced += run.revive("a broker that came back", since_ns)

            run.resumed(RESUMED_MAX_S, tend=tend)
        while (at_s := time.monotonic() - began) < SOAK_S:
            samples.append(resources(pid, at_s))
            lasting(1.0)
    slope = slope_per_s([one for one in samples if one.at_s > SOAK_S / 3]) * 600 / MIB
    early = [one for one in samples if SOAK_S / 6 < one.at_s <= SOAK_S / 3]
    late = [one for one in samples if one.at_s > SOAK_S * 5 / 6]
    before, after = (statistics.median(one.rss_bytes for one in part) for part in (early, late))
    told = (
        f"{SOAK_S:.0f} s; {fenced} fenced by a broker that came back; memory {before / MIB:.1f} MiB, then {after / MIB:.1f} MiB, slope {slope:.1f} MiB in 10 min; "
        f"threads {_most(early).threads}, then {_most(late).threads}; "
        f"descriptors {_most(early).descriptors}, then {_most(late).descriptors}"
    )
    run.judged(figure, told=[told])
    if released():
        assert slope * MIB / 600 < SLOPE_MAX, told
    else:
        assert after - before <= GROWTH_MAX, told
    assert _most(late).threads <= _most(early).threads + THREADS_MORE, told
    assert _most(late).descriptors <= _most(early).descriptors + DESCRIPTORS_MORE, told


def _most(samples: list[Resources]) -> Resources:
    """Return the largest of each."""
    return Resources(*(max(values) for values in zip(*samples, strict=True)))
