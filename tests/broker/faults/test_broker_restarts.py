"""The broker is killed and restarted under load: members stay, wait, and go on where they were."""

import itertools
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.endangered import Endangered
from tests.support.group_run import GroupRun, steady_spec
from tests.support.scale import scaled
from tests.support.traffic import read_topic

pytestmark = pytest.mark.acceptance

RESTARTS = scaled(5, 20)
RESUMED_MAX_S = 30.0


@pytest.mark.timeout(scaled(300, 1200))
@pytest.mark.proves(24, 37)
def test_a_killed_broker_costs_no_repeat_and_no_result_twice(
    endangered: Endangered, endangered_topic: str, group: str, tmp_path: Path, figure: Callable[[object], None]
) -> None:
    """Consumption resumes within 30 s of each restart; nothing is handled twice, results come once and in key order."""
    broker = endangered.broker
    results = f"{endangered_topic}-results"
    broker.create_topic(results, 4)
    # The broker is up for a second or two between its deaths: the default heartbeat may miss all of these for a session.
    spec = steady_spec(
        broker.bootstrap, endangered_topic, group, results=results, consumerConfig={"heartbeat.interval.ms": "500"}
    )
    run = GroupRun(broker, endangered_topic, group, tmp_path, spec=spec)
    waits: list[float] = []
    with run.load():
        for _ in range(RESTARTS):
            for ordinal in range(3):
                run.running(ordinal, 500)
            run.bounce()
            waits.append(run.resumed(RESUMED_MAX_S))
    received = read_topic(broker.bootstrap, results, broker.end_offsets(results))
    offsets: dict[bytes | None, list[int]] = defaultdict(list)
    for one in received:
        offsets[one.key].append(int(one.headers["offset"] or b"-1"))
    told = (
        f"{RESTARTS} restarts, resumed after at most {max(waits):.1f} s; {len(received)} results, each once, in order"
    )
    run.judged(figure, told=[told])
    assert len(received) == run.traffic.produced
    for key, found in offsets.items():
        assert all(a < b for a, b in itertools.pairwise(found)), f"{key!r}: results twice or out of order"
