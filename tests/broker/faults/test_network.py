"""The network between members and broker is cut, slow, reset, or half gone: consumption resumes within 20 s."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.endangered import Endangered
from tests.support.group_run import GroupRun, lasting, steady_spec
from tests.support.scale import scaled

pytestmark = pytest.mark.acceptance

TIMES = scaled(1, 20)
RESUMED_MAX_S = 20.0
LONG_CUT_S = scaled(15.0, 60.0)
"""A minute outlives the default session of 45 s; so do 15 s a session of 6 s, which every run takes to save the time."""
LONG_CUT_SESSION = scaled("6s", "45s")


def _cut(hurt: Endangered, seconds: float) -> None:
    hurt.proxy.cut()
    lasting(seconds)
    hurt.proxy.heal()


def _short_cut(run: GroupRun, hurt: Endangered) -> float:
    _cut(hurt, 10.0)
    return run.resumed(RESUMED_MAX_S)


def _long_cut(run: GroupRun, hurt: Endangered) -> float:
    with run.excused("losing the session"):
        _cut(hurt, LONG_CUT_S)
        return run.resumed(RESUMED_MAX_S)


def _resets(run: GroupRun, hurt: Endangered) -> float:
    for _ in range(10):
        hurt.proxy.reset()
        lasting(0.3)
    return run.resumed(RESUMED_MAX_S)


def _latency(run: GroupRun, hurt: Endangered) -> float:
    hurt.proxy.delay(0.5)
    slow_s = run.resumed(RESUMED_MAX_S)
    lasting(5.0)
    hurt.proxy.heal()
    return max(slow_s, run.resumed(RESUMED_MAX_S))


def _half_open(run: GroupRun, hurt: Endangered) -> float:
    hurt.proxy.half_open()
    return run.resumed(RESUMED_MAX_S)


@pytest.mark.timeout(scaled(240, 3600))
@pytest.mark.parametrize("fault", [_short_cut, _long_cut, _resets, _latency, _half_open], ids=lambda one: one.__name__)
@pytest.mark.proves(24)
def test_consumption_resumes_after(  # noqa: PLR0917 - pytest passes by name
    endangered: Endangered,
    endangered_topic: str,
    group: str,
    tmp_path: Path,
    figure: Callable[[object], None],
    fault: Callable[[GroupRun, Endangered], float],
) -> None:
    """Every partition moves on within 20 s, nothing is lost, and nothing is repeated while the session holds."""
    session = LONG_CUT_SESSION if fault is _long_cut else "45s"
    spec = steady_spec(endangered.proxy.bootstrap, endangered_topic, group, sessionTimeout=session)
    run = GroupRun(endangered.broker, endangered_topic, group, tmp_path, spec=spec)
    waits: list[float] = []
    with run.load():
        for _ in range(TIMES):
            for ordinal in range(3):
                run.running(ordinal, 500)
            try:
                waits.append(fault(run, endangered))
            finally:
                endangered.proxy.heal()
    run.judged(figure, told=[f"{TIMES} times, resumed after at most {max(waits):.1f} s"])
