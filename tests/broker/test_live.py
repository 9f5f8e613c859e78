"""Live settings on a real group: a change reaches the member in seconds, and the broker sees nothing of it."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from parallel_consumer_runtime.settings import ConcurrencySpec, MemberState, ParallelConsumerSpec
from tests.support.checkers import every_checker, judge, report
from tests.support.commit_watch import CommitWatch
from tests.support.history import read_history
from tests.support.kafka import KafkaBroker
from tests.support.members import Members, spec_for
from tests.support.traffic import Traffic
from tests.support.waiting import wait_until

RECORDS = 20_000
REACH_S = 5.0


def _with(spec: ParallelConsumerSpec, **processing: object) -> ParallelConsumerSpec:
    return spec.model_copy(update={"processing": spec.processing.model_copy(update=processing)})


@pytest.mark.proves(16)
def test_concurrency_reaches_a_running_member_and_moves_nothing(
    kafka: KafkaBroker, topic: str, group: str, tmp_path: Path, figure: Callable[[object], None]
) -> None:
    """From 8 to 200 within 5 s under load: same process, same generation, same members, and a clean history."""
    spec = spec_for(kafka.bootstrap, topic, group, "on_record", concurrency={"fixed": 8})
    with (
        Members("live", spec, tmp_path) as members,
        CommitWatch(kafka.bootstrap, group, topic, members.history) as watch,
    ):
        traffic = Traffic(kafka.bootstrap, topic, members.history)
        traffic.send((f"key-{number % 500}", b"x" * 100) for number in range(RECORDS))
        members.start(0)
        members.wait_status(0, lambda status: status.handled > 500, "runs")
        pid, before = members.process(0).pid, kafka.group(group)
        changed_at = time.monotonic()
        live = members.apply(_with(spec, concurrency=ConcurrencySpec(fixed=200)))
        reached = members.wait_status(0, lambda status: status.revision == live.revision, "applied it", REACH_S)
        figure(f"applied after {time.monotonic() - changed_at:.2f} s")
        assert reached.concurrency == 200
        members.wait_status(0, lambda status: status.in_flight > 8, "uses it")
        assert kafka.group(group) == before
        assert members.process(0).pid == pid
        wait_until(lambda: watch.total >= RECORDS, "everything is committed", 60)
        assert kafka.group(group) == before
        assert members.terminate(0) == 0
    violations = judge(read_history(members.history_path), every_checker())
    assert not violations, report(violations)


@pytest.mark.proves(10, 16)
def test_pausing_stops_the_handlers_and_keeps_the_membership(
    kafka: KafkaBroker, topic: str, group: str, tmp_path: Path
) -> None:
    """Paused: nothing in flight, still in the group, still ready; resumed: everything is handled."""
    spec = spec_for(kafka.bootstrap, topic, group, "on_record", concurrency={"fixed": 8})
    with Members("pause", spec, tmp_path) as members:
        Traffic(kafka.bootstrap, topic).send((f"key-{number}", b"x") for number in range(5000))
        members.start(0)
        members.wait_status(0, lambda status: status.handled > 100, "runs")
        before = kafka.group(group)
        members.apply(_with(spec, paused=True))
        members.wait_status(0, lambda s: s.state is MemberState.PAUSED and s.in_flight == 0, "is paused", REACH_S)
        assert members.get(0, "/readyz") == "ok\n"
        assert kafka.group(group) == before
        members.apply(spec)
        members.wait_status(0, lambda status: status.lag == 0, "handled everything")


def test_settings_that_do_not_fit_are_refused_and_the_old_ones_stay(
    kafka: KafkaBroker, topic: str, group: str, tmp_path: Path
) -> None:
    """A damaged live file is named with its field in the log; the member runs on and takes the next good one."""
    spec = spec_for(kafka.bootstrap, topic, group, "on_record", concurrency={"fixed": 8})
    with Members("keep", spec, tmp_path) as members:
        members.start(0)
        first = members.wait_status(0, lambda status: status.state is MemberState.RUNNING, "runs")
        path = tmp_path / "live.json"
        path.write_text(path.read_text().replace('"fixed":8', '"fixed":0'))
        wait_until(lambda: "concurrency.fixed" in members.process(0).text(), "the refusal is logged", REACH_S)
        unchanged = members.status(0)
        assert unchanged is not None
        assert (unchanged.revision, unchanged.concurrency) == (first.revision, 8)
        live = members.apply(_with(spec, concurrency=ConcurrencySpec(fixed=9)))
        members.wait_status(0, lambda status: status.revision == live.revision, "takes the next", REACH_S)
