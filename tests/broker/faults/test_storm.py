"""A storm of rebalances: members come and go for good, one after the other, under each way of agreeing."""

import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.group_run import GroupRun, steady_spec
from tests.support.kafka import KafkaBroker
from tests.support.leave_group import leave_group
from tests.support.scale import scaled

pytestmark = pytest.mark.acceptance

STORM_S = scaled(20.0, 600.0)
"""Every run takes a third of the minute that is asked for, so that four storms fit; a release takes ten minutes. Eager
assignors, the simpler case, take half of either."""
ORDINALS = 5
RUNNING_MIN = 2
STAYERS = 3
IDLE_MAX_S = 15.0
SEED = 20


@pytest.mark.timeout(scaled(240, 1200))
@pytest.mark.parametrize(
    ("assignor", "protocol"),
    [
        ("Range", "Classic"),
        ("RoundRobin", "Classic"),
        ("CooperativeSticky", "Classic"),
        ("CooperativeSticky", "Consumer"),
    ],
    ids=["range", "roundrobin", "cooperative", "kip-848"],
)
@pytest.mark.proves(25)
def test_members_that_come_and_go_repeat_nothing(  # noqa: PLR0917 - pytest passes by name
    kafka: KafkaBroker,
    wide_topic: str,
    group: str,
    tmp_path: Path,
    figure: Callable[[object], None],
    assignor: str,
    protocol: str,
) -> None:
    """Nothing lost, nothing twice, keys in order; afterwards no partition stands still for 15 s."""
    spec = steady_spec(kafka.bootstrap, wide_topic, group, assignor=assignor, groupProtocol=protocol)
    run = GroupRun(kafka, wide_topic, group, tmp_path, spec=spec, replicas=STAYERS)
    chance = random.Random(SEED)
    came = went = 0
    with run.load():
        first = kafka.group(group).generation or 0
        deadline = time.monotonic() + STORM_S * (0.5 if assignor in {"Range", "RoundRobin"} else 1.0)
        while time.monotonic() < deadline:
            running = run.members.ordinals()
            absent = sorted(set(range(ORDINALS)) - set(running))
            if absent and (len(running) <= RUNNING_MIN or chance.random() < 0.5):
                run.members.start(chance.choice(absent))
                came += 1
            elif len(running) > RUNNING_MIN:
                _remove(run, chance.choice(running))
                went += 1
        for ordinal in set(range(STAYERS)) - set(run.members.ordinals()):
            run.members.start(ordinal)
        idle_s = run.resumed(IDLE_MAX_S)
        last = kafka.group(group).generation or 0
    told = f"{came} came, {went} went, {last - first} generations; every partition moved on within {idle_s:.1f} s"
    run.judged(figure, told=[told])
    assert last - first >= went // 3, told  # those that come and go within one rebalance share it


def _remove(run: GroupRun, ordinal: int) -> None:
    """Scale in: end a member once it works, and take its place in the group away."""
    run.members.wait_status(ordinal, lambda status: bool(status.partitions), "owns partitions")
    assert run.members.terminate(ordinal) == 0
    leave_group(run.kafka.bootstrap, run.group, f"run-{ordinal}")
