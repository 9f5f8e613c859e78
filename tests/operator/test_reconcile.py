"""Reconciling: reaches the wish from wherever it stands, step by step, and rests when it is there."""

import asyncio
import gc
from datetime import UTC, datetime
from typing import Any

import pytest

from parallel_consumer_operator.errors import ForbiddenError, OperatorError, RefusedError, ServerUnavailableError
from parallel_consumer_operator.kube import Key
from parallel_consumer_operator.reconcile import Reconciler
from parallel_consumer_operator.reconcile.writing import StatusWriter
from parallel_consumer_runtime.settings import LIVE_FILE, LiveSettings, MemberState
from tests.support.corpus import manifest
from tests.support.fake_kube import FakeKube, FakeReader

KEY_PARTS = ("default", "orders")
KEY = Key(*KEY_PARTS)
CHILDREN = ["ConfigMap", "ServiceAccount", "Service", "PodDisruptionBudget", "StatefulSet"]


class World:
    """A cluster, its pods, a clock, and an operator that can be killed."""

    def __init__(self, **changes: Any) -> None:
        self.kube = FakeKube()
        self.reader = FakeReader()
        self.now_s = 1000.0
        self.wish(**changes)
        self.restart()

    def restart(self) -> None:
        """Forget everything the operator remembered."""
        writer = StatusWriter(self.kube, "test", self.now)
        self.reconciler = Reconciler(self.kube, self.reader, writer, lambda: self.now_s, self.now)

    def now(self) -> datetime:
        """Return the wall clock's time."""
        return datetime.fromtimestamp(self.now_s, UTC)

    def wish(self, **changes: Any) -> None:
        """Let the user apply the object with changes."""
        self.kube.user_applies(manifest(**changes))

    def reconcile(self) -> float | None:
        """Reconcile once."""
        return asyncio.run(self.reconciler.reconcile(KEY))

    def step(self) -> list[str]:
        """Reconcile once, three seconds later; return the writes."""
        self.now_s += 3
        before = len(self.kube.writes)
        self.reconcile()
        return self.kube.writes[before:]

    def settle(self) -> None:
        """Let pods come and report, and reconcile until nothing is written."""
        for _ in range(20):
            written = self.step()
            if ("StatefulSet", "default", "orders") in self.kube.objects:
                self.kube.play_statefulset()
                self.report_all()
            if not written:
                return
        raise AssertionError(self.kube.writes)

    def report_all(self) -> None:
        """Let every pod report that it works with the newest live settings."""
        pods = {name for kind, _, name in self.kube.objects if kind == "Pod"}
        self.reader.members = {name: told for name, told in self.reader.members.items() if name in pods}
        for name in pods:
            self.reader.tell(name, self.live.revision)

    @property
    def live(self) -> LiveSettings:
        """What the ConfigMap carries."""
        data = self.kube.objects["ConfigMap", "default", "orders-runtime"]["data"]
        return LiveSettings.model_validate_json(data[LIVE_FILE])

    @property
    def status(self) -> dict[str, Any]:
        """The object's status."""
        found: dict[str, Any] = self.kube.objects["ParallelConsumer", "default", "orders"]["status"]
        return found

    def condition(self, kind: str) -> tuple[str, str, str]:
        """Return a condition's status, reason and message."""
        found = next(item for item in self.status["conditions"] if item["type"] == kind)
        return found["status"], found["reason"], found["message"]


def test_children_are_created_in_order_and_then_nothing_is_written() -> None:
    """The first reconcile creates everything; once pods run, one status, and then silence."""
    world = World(spec__replicas=2)
    assert world.step() == [*(f"apply {kind}" for kind in CHILDREN), "status"]
    world.settle()
    assert world.status["state"] == "Running"
    assert (world.status["replicas"], world.status["readyReplicas"], world.status["lag"]) == (2, 2, 0)
    assert world.status["observedGeneration"] == 1
    assert world.step() == world.step() == []
    assert world.reconcile() is None


def test_a_restarted_operator_writes_nothing_when_all_is_well() -> None:
    """An upgrade of the operator is no event for its users."""
    world = World(spec__resources={"requests": {"memory": "1024Mi", "cpu": "0.5"}})
    world.settle()
    world.restart()
    assert world.step() == []


def test_a_quantity_that_the_server_rewrites_is_no_drift() -> None:
    """One dry run finds it out, and it is remembered."""
    world = World(spec__resources={"requests": {"memory": "1024Mi"}})
    world.settle()
    dry_runs = world.kube.dry_runs
    assert world.step() == []
    assert world.kube.dry_runs == dry_runs > 0


def test_drift_is_repaired() -> None:
    """What someone else changed in a child is put back; what someone deleted is made again."""
    world = World()
    world.settle()
    world.kube.objects["StatefulSet", "default", "orders"]["spec"]["replicas"] = 7
    del world.kube.objects["ConfigMap", "default", "orders-runtime"]
    assert set(world.step()) >= {"apply StatefulSet", "apply ConfigMap"}
    assert world.kube.objects["StatefulSet", "default", "orders"]["spec"]["replicas"] == 1


def test_concurrency_reaches_running_pods_by_configmap_and_nudge_alone() -> None:
    """A live change applies one ConfigMap and nudges each pod until it reports; no pod is deleted."""
    world = World(spec__replicas=2)
    world.settle()
    world.wish(spec__replicas=2, spec__processing={"concurrency": {"fixed": 200}})
    assert world.step() == ["apply ConfigMap", "annotate orders-0", "annotate orders-1", "status"]
    assert world.condition("ConcurrencyApplied")[:2] == ("False", "WaitingForPods")
    world.reader.tell("orders-0", world.live.revision, concurrency=200)
    assert [write for write in world.step() if write != "status"] == ["annotate orders-1"]
    world.reader.tell("orders-1", world.live.revision, concurrency=200)
    world.step()
    assert world.condition("ConcurrencyApplied")[:2] == ("True", "Acknowledged")
    assert world.status["concurrency"] == 400
    assert world.status["appliedRevision"] == world.live.revision
    assert world.step() == []


def test_nudges_are_repeated_within_a_second_and_do_not_flood() -> None:
    """A kubelet that was nudged too early is nudged again soon; a reconcile in between sends nothing."""
    world = World()
    world.settle()
    world.wish(spec__processing={"paused": True})
    world.step()
    waits: list[float] = []
    for _ in range(6):
        wait_s = world.reconcile()
        assert wait_s is not None
        before = len(world.kube.writes)
        world.reconcile()
        assert "annotate orders-0" not in world.kube.writes[before:]
        waits.append(wait_s)
        world.now_s += wait_s
    assert waits[0] <= 0.25
    assert max(waits) <= 1


def test_a_new_template_restarts_one_pod_at_a_time() -> None:
    """The next pod goes only when the last one is ready again, the highest ordinal first."""
    world = World(spec__replicas=3)
    world.settle()
    world.wish(spec__replicas=3, spec__image="orders:2")
    assert [write for write in world.step() if write != "status"] == ["apply StatefulSet"]
    deleted: list[str] = []
    for _ in range(3):
        deleted += [write for write in world.step() if write.startswith("delete")]
        assert not any(write.startswith("delete") for write in world.step()), "a pod is missing"
        world.kube.play_statefulset(ready=True)
        last = deleted[-1].removeprefix("delete ")
        world.kube.set_ready(last, ready=False)
        assert not any(write.startswith("delete") for write in world.step()), "a pod is not ready"
        assert world.status["state"] in {"Updating", "Pending"}
        world.kube.set_ready(last, ready=True)
        world.report_all()
    assert deleted == ["delete orders-2", "delete orders-1", "delete orders-0"]
    world.settle()
    assert world.condition("Reconciling")[:2] == ("False", "AsDesired")


def test_scaling_in_asks_first_and_shrinks_when_the_pod_has_left() -> None:
    """Live settings carry the new count first; the StatefulSet follows when the pod reports Closed."""
    world = World(spec__replicas=3)
    world.settle()
    world.wish(spec__replicas=2)
    assert "apply StatefulSet" not in world.step()
    assert world.live.replicas == 2
    world.report_all()
    assert "apply StatefulSet" not in world.step()
    world.reader.tell("orders-2", world.live.revision, state=MemberState.CLOSED)
    assert "apply StatefulSet" in world.step()
    world.settle()
    assert world.status["replicas"] == 2


def test_a_template_that_the_controller_has_not_seen_restarts_nothing() -> None:
    """A pod deleted before the StatefulSet's controller knows the template would come back as it was, and go again."""
    world = World()
    world.settle()
    world.wish(spec__image="orders:2")
    assert "apply StatefulSet" in world.step()
    world.kube.objects["StatefulSet", "default", "orders"]["metadata"]["generation"] += 1
    assert "delete orders-0" not in world.step()
    assert (world.reconcile() or 1000) <= 5, "the event that tells may be lost"
    world.kube.objects["StatefulSet", "default", "orders"]["status"] = {"observedGeneration": 2}
    assert "delete orders-0" in world.step()


def test_those_who_are_to_leave_later_have_their_whole_time() -> None:
    """A scale-in that goes further begins its wait anew; one that goes less far does not."""
    world = World(spec__replicas=4)
    world.settle()
    world.wish(spec__replicas=3)
    world.step()
    world.now_s += 65
    world.wish(spec__replicas=1)
    assert "apply StatefulSet" not in world.step()
    world.now_s += 65
    world.wish(spec__replicas=2)
    assert "apply StatefulSet" not in world.step()
    world.now_s += 10
    assert "apply StatefulSet" in world.step()


def test_scaling_in_does_not_wait_for_ever() -> None:
    """A pod that cannot say that it left is given the drain and the session, no more."""
    world = World(spec__replicas=2)
    world.settle()
    world.wish(spec__replicas=0)
    assert "apply StatefulSet" not in world.step()
    world.now_s += 30 + 45
    assert "apply StatefulSet" in world.step()
    world.settle()
    assert world.status["state"] == "Stopped"
    assert "lag" not in world.status, "nobody knows it"


def test_lag_is_unknown_while_one_pod_is_silent() -> None:
    """Unknown is absent, never 0."""
    world = World(spec__replicas=2)
    world.settle()
    assert world.status["lag"] == 0
    del world.reader.members["orders-1"]
    world.step()
    assert "lag" not in world.status
    assert world.condition("ConcurrencyApplied")[1] == "PodsDoNotReport"
    world.report_all()
    world.reader.tell("orders-1", world.live.revision, lag=None)
    world.step()
    assert "lag" not in world.status


def test_figures_are_written_every_two_seconds_at_most() -> None:
    """Lag that moves all the time does not keep the API server busy, and its last value arrives."""
    world = World()
    world.settle()
    writes = len(world.kube.writes)
    wait_s: float | None = None
    for tenth in range(50):
        world.reader.tell("orders-0", world.live.revision, lag=tenth, in_flight=tenth)
        world.now_s += 0.1
        wait_s = world.reconcile()
    assert len(world.kube.writes) - writes in {2, 3}
    assert wait_s is not None
    world.now_s += wait_s
    world.reconcile()
    assert world.status["lag"] == 49


def test_a_transition_is_written_at_once_and_told_once() -> None:
    """A broker that goes away is seen in the next reconcile; its return too; each is one event."""
    world = World()
    world.settle()
    world.kube.events.clear()
    world.reader.tell("orders-0", world.live.revision, kafka_reachable=False)
    world.reconcile()
    assert world.condition("KafkaReachable")[:2] == ("False", "Disconnected")
    assert world.status["state"] == "Degraded"
    for _ in range(3):
        world.step()
    world.report_all()
    world.reconcile()
    told = [(event["type"], event["reason"]) for event in world.kube.events]
    assert told == [("Warning", "Disconnected"), ("Normal", "Connected")]


def test_a_condition_keeps_the_time_of_its_last_change() -> None:
    """A new message is not a new answer."""
    world = World()
    world.settle()
    before = {item["type"]: item["lastTransitionTime"] for item in world.status["conditions"]}
    world.wish(spec__replicas=2)
    world.settle()
    after = {item["type"]: item["lastTransitionTime"] for item in world.status["conditions"]}
    assert after["KafkaReachable"] == before["KafkaReachable"]


def test_a_failing_pod_is_explained_in_words() -> None:
    """The condition carries what the container said when it ended."""
    world = World()
    world.settle()
    world.kube.set_ready("orders-0", ready=False)
    world.kube.objects["Pod", "default", "orders-0"]["status"]["containerStatuses"] = [
        {
            "name": "consumer",
            "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}},
            "lastState": {"terminated": {"exitCode": 78, "reason": "Error", "message": "topic orders does not exist"}},
        }
    ]
    world.step()
    status, reason, message = world.condition("Ready")
    assert (status, reason) == ("False", "PodFailing")
    assert "CrashLoopBackOff" in message
    assert "topic orders does not exist" in message
    assert world.status["state"] == "Degraded"


def test_a_pod_on_a_lost_node_is_named() -> None:
    """It ends never, nothing is put in its place, and the condition says what a person must do."""
    world = World(spec__replicas=2)
    world.settle()
    pod = world.kube.objects["Pod", "default", "orders-1"]
    pod["metadata"]["deletionTimestamp"] = world.now().isoformat()
    pod["spec"]["nodeName"] = "n3"
    world.step()
    assert world.condition("Ready")[1] == "PodsNotReady"
    world.now_s += 60
    world.step()
    status, reason, message = world.condition("Ready")
    assert (status, reason) == ("False", "PodFailing")
    assert "node n3 may be lost" in message
    assert world.status["state"] == "Degraded"
    assert (world.reconcile() or 1000) <= 5


def test_a_refused_template_becomes_a_condition_and_changes_nothing() -> None:
    """A spec that reaches too far is named by path; the pods that run are left alone."""
    world = World()
    world.settle()
    world.wish(spec__template={"spec": {"hostNetwork": True}})
    assert world.step() == ["status"]
    status, reason, message = world.condition("Ready")
    assert (status, reason) == ("False", "TemplateRefused")
    assert message.startswith("spec.template.spec.hostNetwork:")
    assert world.status["observedGeneration"] == 2
    assert world.step() == []
    world.wish()
    world.settle()
    assert world.condition("Ready")[0] == "True"


def test_pods_are_told_of_while_their_object_is_refused() -> None:
    """What runs goes on, and its figures with it: a lag of before would look like one of now. The log says it once."""
    world = World()
    world.settle()
    world.wish(spec__template={"spec": {"hostNetwork": True}})
    world.step()
    world.reader.tell("orders-0", world.live.revision, lag=700, kafka_reachable=False)
    assert world.step() == ["status"]
    assert (world.status["state"], world.status["lag"], world.status["readyReplicas"]) == ("Refused", 700, 1)
    assert world.condition("KafkaReachable")[1] == "Disconnected"
    assert world.condition("Ready")[1] == "TemplateRefused"
    assert not asyncio.run(world.reconciler.sample(KEY)), "nothing new, and yet a reconcile"


def test_a_refusal_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """Not with every reconcile that moving figures ask for; again when it was mended in between."""
    world = World()
    for _ in range(2):
        world.wish()
        world.settle()
        world.wish(spec__template={"spec": {"hostNetwork": True}})
        for lag in range(3):
            world.reader.tell("orders-0", world.live.revision, lag=lag)
            world.step()
    told = [record for record in caplog.records if "TemplateRefused" in record.message]
    assert len(told) == 2


def test_a_status_of_another_version_is_replaced() -> None:
    """After a rollback the stored status may hold words that this operator does not know."""
    world = World()
    world.settle()
    world.status["state"] = "Hibernating"
    world.status["conditions"][0]["status"] = "Maybe"
    assert world.step() == ["status"]
    assert world.status["state"] == "Running"
    assert world.step() == []


def test_figures_are_told_although_a_pod_cannot_be_touched() -> None:
    """A policy that refuses our annotation does not leave a stale lag behind; the reconcile fails, and is tried again."""
    world = World()
    world.settle()
    world.wish(spec__processing={"paused": True})
    world.reader.tell("orders-0", world.live.revision, lag=700)

    def refuse(what: str) -> None:
        if what.startswith("annotate"):
            raise ForbiddenError("a policy denies it")

    world.kube.before_write = refuse
    with pytest.raises(ForbiddenError):
        world.step()
    assert world.status["lag"] == 700
    assert world.condition("ConcurrencyApplied")[1] == "WaitingForPods"


def test_a_spec_that_the_schema_could_not_refuse_becomes_a_condition() -> None:
    """A pattern that is no regular expression names its field."""
    world = World(spec__kafka={"bootstrapServers": "kafka:9092", "groupId": "orders", "topicPattern": "^(orders"})
    assert world.step() == ["status"]
    assert world.condition("Ready")[1] == "SpecRefused"
    assert world.condition("Ready")[2].startswith("spec.kafka.topicPattern:")


def test_a_child_of_someone_else_is_never_taken() -> None:
    """A Service or StatefulSet of that name that is not ours stays as it is."""
    world = World()
    theirs = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "orders", "namespace": "default"}}
    world.kube.user_applies({**theirs, "spec": {"replicas": 1}})
    assert world.step() == ["status"]
    assert world.condition("Ready")[1] == "NameTaken"
    assert "StatefulSet orders" in world.condition("Ready")[2]
    assert (world.reconcile() or 1000) <= 10, "nobody tells when it is gone"
    del world.kube.objects["StatefulSet", "default", "orders"]
    world.settle()
    assert world.condition("Ready")[0] == "True"


@pytest.mark.parametrize("error", [RefusedError, ForbiddenError])
def test_a_child_that_the_server_refuses_becomes_a_condition(error: type[OperatorError]) -> None:
    """The server's own words reach the user, also those of a quota or a policy. It is asked again every ten seconds."""
    world = World()
    asked: list[float] = []

    def refuse(what: str) -> None:
        if what == "apply StatefulSet":
            asked.append(world.now_s)
            raise error("spec.template.spec.containers[0].image: Invalid value")

    world.kube.before_write = refuse
    world.step()
    assert world.condition("Ready")[1] == "ChildRefused"
    assert "containers[0].image" in world.condition("Ready")[2]
    for _ in range(20):
        world.now_s += 1
        again_s = world.reconcile()
        assert again_s is not None
        assert again_s <= 10
    assert len(asked) == 3
    world.wish(spec__image="orders:2")
    world.reconcile()
    assert len(asked) == 4, "another wish is another question"
    world.kube.before_write = lambda _: None
    world.now_s += 10
    world.settle()
    assert world.condition("Ready")[0] == "True"


def test_a_deleted_object_is_left_to_garbage_collection() -> None:
    """Nothing is written for an object that is gone or on its way."""
    world = World()
    world.settle()
    world.kube.objects["ParallelConsumer", "default", "orders"]["metadata"]["deletionTimestamp"] = "now"
    assert world.step() == []
    del world.kube.objects["ParallelConsumer", "default", "orders"]
    assert world.step() == []
    assert world.reconciler.known == []


def test_a_sample_asks_for_a_reconcile_only_when_figures_changed() -> None:
    """Sampling speaks to pods alone, and idle pods cause nothing."""
    world = World()
    world.settle()
    world.reconcile()
    writes = len(world.kube.writes)
    assert not asyncio.run(world.reconciler.sample(KEY))
    world.reader.tell("orders-0", world.live.revision, lag=5)
    assert asyncio.run(world.reconciler.sample(KEY))
    assert len(world.kube.writes) == writes


def test_a_server_that_does_not_answer_leaves_nothing_running(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Of several readings that fail the first is told, and no other is left for the garbage collector to complain of."""
    world = World()
    world.settle()
    get = world.kube.get

    async def fails(kind: str, *_: str) -> Any:
        if kind == "ParallelConsumer":
            return await get(kind, *KEY_PARTS)
        await asyncio.sleep(0)
        raise ServerUnavailableError(f"get {kind}: no answer")

    monkeypatch.setattr(world.kube, "get", fails)
    monkeypatch.setattr(world.kube, "list", fails)
    with pytest.raises(ServerUnavailableError):
        world.reconcile()
    gc.collect()
    assert [record.message for record in caplog.records if record.name == "asyncio"] == []


class _KilledError(Exception):
    """The operator's process is gone."""


def _life(world: World, kill_at: int | None, *, before: bool) -> int:
    """Create, tune, scale, roll, pause; the operator dies before or after its n-th write. Return the writes."""
    count = 0

    def dies(_: str) -> None:
        nonlocal count
        count += 1
        if count == kill_at:
            world.restart()
            raise _KilledError

    if before:
        world.kube.before_write = dies
    else:
        world.kube.after_write = dies
    wishes: list[dict[str, Any]] = [
        {"spec__replicas": 2},
        {"spec__replicas": 2, "spec__processing": {"concurrency": {"fixed": 99}}},
        {"spec__replicas": 3, "spec__image": "orders:2"},
        {"spec__replicas": 1, "spec__image": "orders:2", "spec__processing": {"paused": True}},
    ]
    for wish in wishes:
        world.wish(**wish)
        quiet = 0
        for _ in range(60):
            world.now_s += 30
            written = len(world.kube.writes)
            try:
                world.reconcile()
            except _KilledError:
                quiet = 0
                continue
            finally:
                if ("StatefulSet", "default", "orders") in world.kube.objects:
                    world.kube.play_statefulset()
                    world.report_all()
            quiet = quiet + 1 if len(world.kube.writes) == written else 0
            if quiet == 5:
                break
        assert quiet == 5, world.kube.writes
    return count


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_the_same_objects_stand_wherever_the_operator_was_killed(before: bool) -> None:  # noqa: FBT001 - pytest's way
    """For every write of a life of create, tune, scale, roll and pause: die there, start anew, end as the calm run."""
    calm = World()
    writes = _life(calm, None, before=before)
    assert writes > 15
    for kill_at in range(1, writes + 1):
        world = World()
        _life(world, kill_at, before=before)
        assert world.kube.final_objects() == calm.kube.final_objects(), f"killed at write {kill_at}"
