"""SIGSTOP beyond the session, then SIGCONT: the member's partitions moved meanwhile, under load."""

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.group_run import GroupRun, steady_spec
from tests.support.kafka import KafkaBroker
from tests.support.members import MemberEndedError
from tests.support.scale import scaled
from tests.support.waiting import wait_until

pytestmark = pytest.mark.acceptance

FREEZES = scaled(5, 20)
SESSION_S = 6
RECOVERY_MAX_S = 30.0
MOVED_TIMEOUT_S = 40.0
PARTITIONS = 8
LOST = " lost: "
"""What a member logs when its session is over."""


@pytest.mark.timeout(scaled(300, 1200))
@pytest.mark.proves(24, 27)
def test_a_thawed_member_commits_nothing_of_what_it_lost(
    kafka: KafkaBroker, wide_topic: str, group: str, tmp_path: Path, figure: Callable[[object], None]
) -> None:
    """Others take over at the session's end; thawed, it commits nothing old, and joins again or ends within 30 s."""
    spec = steady_spec(kafka.bootstrap, wide_topic, group, sessionTimeout=f"{SESSION_S}s")
    run = GroupRun(kafka, wide_topic, group, tmp_path, spec=spec)
    recoveries: list[float] = []

    def shared_out() -> bool:
        # No commit is taken while members join: a freeze in that time would excuse more than its own second.
        view = kafka.group(group)
        return view.state == "STABLE" and sum(len(member.assignment) for member in view.members) == PARTITIONS

    ended = 0
    with run.load():
        for number in range(FREEZES):
            victim = number % 3
            run.running(victim, 500)
            wait_until(shared_out, "the group is stable", MOVED_TIMEOUT_S)
            run.resumed(RECOVERY_MAX_S)
            life = run.members.life(victim)
            with run.excused("freezing", life):
                run.members.freeze(victim)
                others = [ordinal for ordinal in range(3) if ordinal != victim]

                def moved(others: list[int] = others) -> bool:
                    found = [run.members.status(ordinal) for ordinal in others]
                    return sum(len(status.partitions) for status in found if status is not None) == PARTITIONS

                wait_until(moved, "the others took everything", MOVED_TIMEOUT_S)
                run.resumed(RECOVERY_MAX_S)
                recoveries.append(_thawed(run, victim))
                if victim not in run.members.ordinals():
                    ended += 1
                    run.members.start(victim)
                    run.members.wait_status(victim, lambda status: bool(status.partitions), "owns partitions")
    told = f"{FREEZES} freezes, {ended} ended; recovered or ended after at most {max(recoveries):.1f} s"
    run.judged(figure, told=[told])


def _thawed(run: GroupRun, ordinal: int) -> float:
    """Thaw a member and return the seconds until it has partitions again, or ended; one that ended is reaped."""
    process = run.members.process(ordinal)
    began, losses = time.monotonic(), process.text().count(LOST)
    run.members.thaw(ordinal)

    def joined() -> bool:
        # Its own words, in order: for a moment its status still tells what it had before the loss.
        text = process.text()
        if text.count(LOST) == losses or f" assigned: {run.topic}[" not in text.rpartition(LOST)[2]:
            return False
        status = run.members.status(ordinal)
        return status is not None and bool(status.partitions)

    with suppress(MemberEndedError):  # fenced by a commit of before, as it joined
        wait_until(
            lambda: process.exit_code is not None or joined(), "it joined or ended", RECOVERY_MAX_S, state=process.tail
        )
    elapsed_s = time.monotonic() - began
    if process.exit_code is not None:
        run.members.reap(ordinal)
    return elapsed_s
