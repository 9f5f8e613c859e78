"""Commits that are refused with each code, applied and refused, lost, late, or cut off: none stalls the group.

The proxy bends the commits of one member before a real coordinator, so that "refused" and "applied, but told to be
refused" are both real; a fake broker could not show that the second kind is not committed backwards.
"""

import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.support.endangered import Endangered
from tests.support.group_run import GroupRun, steady_spec
from tests.support.network_proxy import Bend, CommitFault
from tests.support.scale import scaled
from tests.support.waiting import wait_until

pytestmark = pytest.mark.acceptance

STALL_MAX_S = 15.0
ROUNDS = scaled(1, 20)
REPEATED = 3
"""How often in a row a commit is refused."""

UNKNOWN, UNKNOWN_TOPIC, TIMED_OUT, METADATA_TOO_LARGE = -1, 3, 7, 12
LOADING, NO_COORDINATOR, NOT_COORDINATOR = 14, 15, 16
ILLEGAL_GENERATION, INVALID_GROUP, UNKNOWN_MEMBER, REBALANCING, INVALID_SIZE = 22, 24, 25, 27, 28
TOPIC_REFUSED, GROUP_REFUSED, FENCED = 29, 30, 82
LOSING = {ILLEGAL_GENERATION, UNKNOWN_MEMBER}
"""Codes after which a member gives everything up and joins again; what was not committed is handled again."""
ENDING = {TOPIC_REFUSED, GROUP_REFUSED, FENCED}
"""Codes after which a process ends, for its kubelet to start another."""

REFUSED = (
    *(UNKNOWN, UNKNOWN_TOPIC, TIMED_OUT, METADATA_TOO_LARGE, LOADING, NO_COORDINATOR, NOT_COORDINATOR),
    *(ILLEGAL_GENERATION, INVALID_GROUP, UNKNOWN_MEMBER, REBALANCING, INVALID_SIZE, *sorted(ENDING)),
)
APPLIED = (UNKNOWN, TIMED_OUT, LOADING, NOT_COORDINATOR)
SCRIPTS = [
    *([CommitFault(Bend.REFUSE, code)] * REPEATED for code in REFUSED),
    *([CommitFault(Bend.APPLY_AND_REFUSE, code)] * REPEATED for code in APPLIED),
    [CommitFault(Bend.DROP_REQUEST)],
    [CommitFault(Bend.DROP_REPLY)],
    [CommitFault(Bend.DELAY_REQUEST, delay_s=5.0)],
    [CommitFault(Bend.DELAY_REPLY, delay_s=5.0)],
    [CommitFault(Bend.RESET_BEFORE)] * REPEATED,
    [CommitFault(Bend.RESET_AFTER)] * REPEATED,
]


@pytest.mark.timeout(scaled(400, 3600))
def test_no_commit_fault_stalls_the_group(
    endangered: Endangered, endangered_topic: str, group: str, tmp_path: Path, figure: Callable[[object], None]
) -> None:
    """After each of 25 scripts every partition's commits move on within 15 s, and only a lost membership repeats."""
    spec = steady_spec(endangered.proxy.bootstrap, endangered_topic, group)
    run = GroupRun(endangered.broker, endangered_topic, group, tmp_path, spec=spec, replicas=2)
    lines: list[str] = []
    with run.load():
        for script in SCRIPTS * ROUNDS:
            run.running(0, 200)
            lines.append(f"{len(script)} x {script[0]}: {_stall(run, endangered, script):.1f} s")
    run.judged(figure, told=[f"{len(SCRIPTS)} scripts, {ROUNDS} times", *lines])


def _stall(run: GroupRun, hurt: Endangered, script: list[CommitFault]) -> float:
    """Bend the first member's next commits; return the longest time in which some partition's commits stood still."""
    code, bent = script[0].code, hurt.proxy.bent
    process, life = run.members.process(0), run.members.life(0)
    ending, losing = code in ENDING, code in LOSING
    faults = script[:1] if ending else script
    with run.excused("a lost membership", life) if ending or losing else nullcontext():
        began = time.monotonic()
        hurt.proxy.bend_commits("run-0", faults)
        what = f"{script[0]} is done"
        wait_until(lambda: hurt.proxy.bent >= bent + len(faults), what, STALL_MAX_S, state=process.tail)
        if ending:
            assert run.members.reap(0, STALL_MAX_S) != 0
            run.members.start(0)
        run.resumed(STALL_MAX_S)
        first_s = time.monotonic() - began
    # What was applied moves on once before the reply is missed: the stall, if any, comes after that.
    return max(first_s, run.resumed(STALL_MAX_S))
