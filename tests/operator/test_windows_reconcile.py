"""Windows of a consumer as the API server sees them: a ledger, and one SparkJob after the other, whatever dies between two calls."""

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest

from parallel_consumer_operator.errors import OperatorError, ServerUnavailableError
from parallel_consumer_operator.kube import Key
from parallel_consumer_operator.reconcile import Reconciler, SparkJobReconciler
from parallel_consumer_operator.reconcile.writing import StatusWriter
from parallel_consumer_runtime.settings import OffsetsAnswer
from parallel_consumer_runtime.settings.spark import SPARK_JOB_KIND
from tests.support.corpus import manifest
from tests.support.fake_kube import FakeKube, FakeReader

KEY = Key("default", "orders")
LEDGER = ("ConfigMap", "default", "orders-archive-windows")
ENTRY: dict[str, Any] = {
    "name": "archive",
    "image": "spark:1",
    "mainApplicationFile": "local:///opt/parallel-consumer/archive.py",
    "arguments": ["--output", "/data"],
    "executor": {"instances": 2},
    "trigger": {"offsets": 10},
}


class KilledError(Exception):
    """The operator died here."""


class World:
    """A cluster with one consumer whose commits move, and an operator that can be killed."""

    def __init__(self, **entry: Any) -> None:
        self.kube, self.reader = FakeKube(), FakeReader()
        self.now_s = 1_000_000.0
        self.committed = [0, 0]
        self.kube.created_at = lambda: self.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        self.kube.user_applies(manifest("orders", spec__replicas=1, spec__sparkJobs=[{**ENTRY, **entry}]))
        self.restart()
        for _ in range(8):
            self.step()

    def restart(self) -> None:
        """Forget everything that the operator remembered."""
        writer = StatusWriter(self.kube, "test", self.now)
        self.woken: list[Key] = []
        self.consumers = Reconciler(
            self.kube, self.reader, writer, lambda: self.now_s, self.now, wake=self.woken.append
        )
        self.spark_jobs = SparkJobReconciler(
            self.kube, writer, "spark", lambda: self.now_s, self.now, ended=self.consumers.run_ended
        )

    def now(self) -> datetime:
        """Return the wall clock's time."""
        return datetime.fromtimestamp(self.now_s, UTC)

    def step(self) -> list[str]:
        """Reconcile everything once, three seconds later; return the writes."""
        self.now_s += 3
        before = len(self.kube.writes)
        asyncio.run(self.consumers.reconcile(KEY))
        if ("StatefulSet", "default", "orders") in self.kube.objects:
            self.kube.play_statefulset()
        self.report()
        for name in self.runs():
            asyncio.run(self.spark_jobs.reconcile(Key("default", name, SPARK_JOB_KIND)))
        return self.kube.writes[before:]

    def report(self) -> None:
        """Let the pod and the brokers tell of the commits of now."""
        found = self.kube.objects.get(("ConfigMap", "default", "orders-runtime"))
        revision = "" if found is None else json.loads(found["data"]["live.json"])["revision"]
        parts = [
            {"topic": "orders", "partition": p, "committed": at, "end": at, "lag": 0, "buffered": 0, "paused": False}
            for p, at in enumerate(self.committed)
        ]
        self.reader.tell("orders-0", revision, partitions=parts)
        told = [{"partition": p, "start": 0, "end": at} for p, at in enumerate(self.committed)]
        topic = {"name": "orders", "id": "id-1", "role": "Input", "partitions": told}
        self.reader.answer = OffsetsAnswer.model_validate({"at": self.now_s, "topics": [topic]})

    def runs(self) -> list[str]:
        """Return the names of the SparkJobs."""
        return [name for kind, _, name in self.kube.objects if kind == SPARK_JOB_KIND]

    def jobs(self) -> list[str]:
        """Return the names of the batch Jobs."""
        return [name for kind, _, name in self.kube.objects if kind == "Job"]

    def finish(self, state: str = "Succeeded") -> None:
        """Let the newest run end, and the operator hear of it."""
        run = self.kube.objects[SPARK_JOB_KIND, "default", self.runs()[-1]]
        run["status"] = {"state": state, "attempts": 1, "completionTime": self.kube.created_at(), "message": "it ended"}
        asyncio.run(self.spark_jobs.reconcile(Key("default", self.runs()[-1], SPARK_JOB_KIND)))

    def window(self, name: str) -> dict[int, tuple[int, int]]:
        """Return a run's offsets."""
        (topic,) = self.kube.objects[SPARK_JOB_KIND, "default", name]["spec"]["window"]["topics"]
        return {part["partition"]: (part["start"], part["end"]) for part in topic["partitions"]}

    def condition(self) -> dict[str, Any]:
        """Return what the consumer's status says of its windows."""
        conditions = self.kube.objects["ParallelConsumer", "default", "orders"]["status"]["conditions"]
        found: dict[str, Any] = next(one for one in conditions if one["type"] == "WindowsAdvancing")
        return found


def test_a_window_is_cut_when_it_is_due_and_begins_when_the_ledger_names_it() -> None:
    """One round of the operator; the SparkJob is told at once."""
    world = World()
    assert (world.runs(), world.condition()["reason"]) == ([], "AsDesired")
    world.committed = [7, 5]
    world.report()
    world.step()
    (name,) = world.runs()
    assert world.window(name) == {0: (0, 7), 1: (0, 5)}
    run = world.kube.objects[SPARK_JOB_KIND, "default", name]
    assert json.loads(world.kube.objects[LEDGER]["data"]["ledger.json"])["open"]["uid"] == run["metadata"]["uid"]
    assert world.woken == [Key("default", name, SPARK_JOB_KIND)]
    assert run["spec"]["arguments"] == ["--output", "/data"]
    assert run["spec"]["window"]["kafka"]["bootstrapServers"] == "kafka:9092"
    assert [owner["name"] for owner in run["metadata"]["ownerReferences"]] == ["orders"]
    world.step()
    assert len(world.jobs()) == 1


def test_a_sample_notices_a_window_although_no_figure_moves() -> None:
    """As many records are finished as come: lag and records in flight stay."""
    world = World()
    world.committed = [5, 4]
    world.report()
    assert not asyncio.run(world.consumers.sample(KEY))
    world.committed = [5, 5]
    world.report()
    assert asyncio.run(world.consumers.sample(KEY))


def test_the_next_window_begins_where_the_last_one_ended() -> None:
    """And only when that one is done."""
    world = World()
    world.committed = [20, 0]
    world.report()
    world.step()
    world.committed = [40, 30]
    world.report()
    world.step()
    assert len(world.runs()) == 1
    world.finish()
    world.step()
    first, second = world.runs()
    assert (world.window(first), world.window(second)) == ({0: (0, 20), 1: (0, 0)}, {0: (20, 40), 1: (0, 30)})


def test_a_run_that_the_ledger_does_not_name_never_begins() -> None:
    """Whoever made it knew less than somebody else."""
    world = World()
    world.committed = [20, 0]
    world.report()
    world.step()
    ledger = world.kube.objects[LEDGER]["data"]
    told = json.loads(ledger["ledger.json"])
    told["open"]["uid"] = "another"
    ledger["ledger.json"] = json.dumps(told)
    world.kube.objects = {key: value for key, value in world.kube.objects.items() if key[0] != "Job"}
    world.kube.objects[SPARK_JOB_KIND, "default", world.runs()[0]].pop("status", None)
    asyncio.run(world.spark_jobs.reconcile(Key("default", world.runs()[0], SPARK_JOB_KIND)))
    assert world.jobs() == []


def test_a_failed_window_is_told_and_run_again_over_the_same_offsets() -> None:
    """With what the entry says by then."""
    world = World()
    world.committed = [20, 0]
    world.report()
    world.step()
    world.finish("Failed")
    world.step()
    assert world.condition()["reason"] == "RunFailed"
    assert "window 1 failed 1 times, and the next waits for it: it ended" in world.condition()["message"]
    world.kube.user_applies(
        manifest("orders", spec__replicas=1, spec__sparkJobs=[{**ENTRY, "arguments": ["--mended"]}])
    )
    for _ in range(25):
        world.step()
    first, second = world.runs()
    assert second == f"{first}-r1"
    assert world.window(first) == world.window(second)
    assert world.kube.objects[SPARK_JOB_KIND, "default", second]["spec"]["arguments"] == ["--mended"]


def test_a_calm_consumer_asks_and_writes_nothing() -> None:
    """Reports come every second, and most change nothing."""
    world = World()
    world.committed = [20, 0]
    world.report()
    for _ in range(3):
        world.step()
    world.finish()
    for _ in range(3):
        world.step()
    asked = world.reader.asked
    assert [world.step() for _ in range(10)] == [[]] * 10
    assert world.reader.asked == asked


def _lived(before: Callable[[str], None] | None = None, after: Callable[[str], None] | None = None) -> World:
    """Let five windows be cut and done; an operator that dies is followed by another."""
    world = World(successfulJobsHistoryLimit=100)
    world.kube.before_write = before or world.kube.before_write
    world.kube.after_write = after or world.kube.after_write
    for number in range(5):
        world.committed = [(number + 1) * 13, (number + 1) * 7]
        world.report()
        for step in range(7):
            try:
                if step < 6:
                    world.step()
                else:
                    world.finish()
            except (KilledError, OperatorError):
                world.restart()
    return world


def _spans(world: World) -> dict[int, list[tuple[int, int]]]:
    windows = [world.window(name) for name in world.runs()]
    return {partition: [window[partition] for window in windows] for partition in (0, 1)}


def _writes() -> list[int]:
    return list(range(0, len(_lived().kube.writes), 3))


@pytest.mark.parametrize("error", [KilledError, ServerUnavailableError])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_windows_follow_one_another_whatever_dies(error: type[Exception], after: bool) -> None:  # noqa: FBT001 - a parameter
    """Killed, or refused, before or after each third write of a life of five windows: no gap, no overlap, each once."""
    for number in _writes():
        count = 0

        def fail(_: str, number: int = number) -> None:
            nonlocal count
            count += 1
            if count == number + 1:
                raise error("here")

        world = _lived(after=fail) if after else _lived(before=fail)
        for found in _spans(world).values():
            assert found[0][0] == 0
            assert all(end == start for (_, end), (start, _) in pairwise(found)), (number, found)
        assert json.loads(world.kube.objects[LEDGER]["data"]["ledger.json"])["sequence"] >= 4
