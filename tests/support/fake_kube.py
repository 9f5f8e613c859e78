"""An API server in memory, for unit tests of reconciling: applies, counts writes, fails on demand, and plays StatefulSet.

It knows of server-side apply only what one manager sees: fields that are no longer applied go. Claims about the real server
are tested on a real one.
"""

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from parallel_consumer_operator.desired.naming import CONTAINER, Annotations, Manifest, content_hash
from parallel_consumer_operator.errors import ConflictError, NotFoundError
from parallel_consumer_operator.pods import Pod
from parallel_consumer_operator.reconcile.drift import without_bookkeeping
from parallel_consumer_operator.untyped import as_list, as_map, at
from parallel_consumer_runtime.settings import KIND, MemberState, MemberStatus, OffsetsAnswer
from parallel_consumer_runtime.settings.spark import SPARK_JOB_KIND

Name = tuple[str, str, str]

_OURS = {KIND, SPARK_JOB_KIND}
_SERVER_FIELDS = ("uid", "resourceVersion", "generation", "creationTimestamp")
_QUANTITIES = {"1024Mi": "1Gi", "0.5": "500m"}


class FakeKube:
    """Kube in memory."""

    def __init__(self) -> None:
        self.objects: dict[Name, Manifest] = {}
        self.writes: list[str] = []
        """Every mutating request, in words, in order."""
        self.dry_runs = 0
        self.events: list[Manifest] = []
        """Events that the operator told."""
        self.told: list[Manifest] = []
        """Events that others told."""
        self.logs: dict[str, str | Exception] = {}
        """By pod: its log, or why it cannot be read."""
        self.logs_read: list[str] = []
        """Pods whose log was asked for, in order."""
        self.created_at: Callable[[], str] = lambda: "2026-01-02T03:04:05Z"
        """The time that new objects bear."""
        self.before_write: Callable[[str], None] = lambda _: None
        """Called before each write takes effect; may raise."""
        self.after_write: Callable[[str], None] = lambda _: None
        """Called after each write took effect; may raise."""
        self._clock = 0

    async def get(self, kind: str, namespace: str, name: str) -> Manifest | None:
        """See Kube."""
        found = self.objects.get((kind, namespace, name))
        return copy.deepcopy(found) if found is not None else None

    async def list(self, kind: str, namespace: str | None, selector: str = "") -> list[Manifest]:
        """See Kube; selectors of equalities only."""
        wanted = dict(pair.split("=") for pair in selector.split(",") if pair)
        return [
            copy.deepcopy(item)
            for (of, where, _), item in self.objects.items()
            if of == kind
            and namespace in {None, where}
            and wanted.items() <= item["metadata"].get("labels", {}).items()
        ]

    async def apply(self, manifest: Manifest, *, dry_run: bool = False) -> Manifest:
        """See Kube."""
        name = _name(manifest)
        result = _as_stored(manifest, self.objects.get(name))
        if dry_run:
            self.dry_runs += 1
            return result
        await self._write(f"apply {name[0]}", lambda: self._store(name, result))
        return copy.deepcopy(self.objects[name])

    async def apply_status(self, manifest: Manifest) -> Manifest:
        """See Kube."""
        name = _name(manifest)
        if name not in self.objects:
            raise NotFoundError(str(name))
        await self._write("status", lambda: self.objects[name].update(status=copy.deepcopy(manifest["status"])))
        return self.objects[name]

    async def annotate_pod(self, namespace: str, name: str, annotations: dict[str, str]) -> None:
        """See Kube."""
        pod = self.objects["Pod", namespace, name]
        await self._write(f"annotate {name}", lambda: pod["metadata"]["annotations"].update(annotations))

    async def delete_pod(self, namespace: str, name: str, uid: str) -> None:
        """See Kube; pods end at once."""
        key = ("Pod", namespace, name)
        if key in self.objects and self.objects[key]["metadata"]["uid"] == uid:
            await self._write(f"delete {name}", lambda: self.objects.pop(key))

    async def create(self, manifest: Manifest) -> None:
        """See Kube; events are kept apart."""
        if manifest["kind"] == "Event":
            self.events.append(manifest)
            return
        name = _name(manifest)
        if name in self.objects:
            raise ConflictError(f"create {name[0]} {name[1]}/{name[2]}: exists")
        await self._write(f"create {name[0]} {name[2]}", lambda: self._store(name, _as_stored(manifest, None)))

    async def replace(self, manifest: Manifest) -> None:
        """See Kube."""
        name = _name(manifest)
        found = self.objects.get(name)
        if found is None:
            raise NotFoundError(str(name))
        if found["metadata"]["resourceVersion"] != manifest["metadata"].get("resourceVersion"):
            raise ConflictError(f"replace {name[0]} {name[1]}/{name[2]}: the object has been modified")
        await self._write(f"replace {name[0]} {name[2]}", lambda: self._store(name, _as_stored(manifest, found)))

    async def stop_job(self, namespace: str, name: str, uid: str, annotations: dict[str, str]) -> None:
        """See Kube."""
        job = self.objects.get(("Job", namespace, name))
        if job is None:
            return
        if job["metadata"]["uid"] != uid:
            raise ConflictError(f"suspend Job {name}: another uid")

        def effect() -> None:
            job["metadata"].setdefault("annotations", {}).update(annotations)
            job["spec"]["suspend"] = True

        await self._write(f"suspend Job {name}", effect)

    async def delete(self, kind: str, namespace: str, name: str, uid: str) -> None:
        """See Kube; what it owned goes at once."""
        key = (kind, namespace, name)
        if key in self.objects and self.objects[key]["metadata"]["uid"] == uid:
            await self._write(f"delete {kind} {name}", lambda: self.collect(key))

    async def events_about(self, namespace: str, uid: str) -> Sequence[Manifest]:
        """See Kube; a test writes what was told."""
        _ = namespace
        return [event for event in self.told if event["regarding"]["uid"] == uid]

    async def log_tail(self, namespace: str, pod: str, container: str, *, lines: int, size_bytes: int) -> str:
        """See Kube; a test writes the logs."""
        self.logs_read.append(pod)
        if ("Pod", namespace, pod) not in self.objects:
            raise NotFoundError(f"read the log of Pod {namespace}/{pod}: not found")
        told = self.logs.get(pod, "")
        if isinstance(told, Exception):
            raise told
        assert container
        return "\n".join(told.splitlines()[-lines:])[-size_bytes:]

    # What tests do to the cluster

    def user_applies(self, manifest: Manifest) -> None:
        """Store an object of a user; the generation grows with the spec."""
        name = _name(manifest)
        old = self.objects.get(name)
        stored = _as_stored(manifest, old)
        if old is not None:
            grown = 1 if old["spec"] != manifest["spec"] else 0
            stored["metadata"]["generation"] = old["metadata"]["generation"] + grown
        self._store(name, stored)

    def collect(self, key: Name) -> None:
        """Let an object go, and everything that names it as an owner."""
        uid = self.objects.pop(key)["metadata"]["uid"]
        for other in list(self.objects):
            references = as_list(at(self.objects.get(other), "metadata", "ownerReferences")) or []
            if any(at(reference, "uid") == uid for reference in references):
                self.collect(other)

    def play_statefulset(self, name: str = "orders", *, ready: bool = True) -> None:
        """Create the pods that are missing from the newest template, delete those that are too many."""
        found = self.objects["StatefulSet", "default", name]
        found["status"] = {"observedGeneration": found["metadata"]["generation"]}
        replicas = found["spec"]["replicas"]
        for key in [key for key in self.objects if key[0] == "Pod"]:
            if int(key[2].rpartition("-")[2]) >= replicas:
                del self.objects[key]
        for ordinal in range(replicas):
            key = ("Pod", "default", f"{name}-{ordinal}")
            if key not in self.objects:
                pod: Manifest = {**copy.deepcopy(found["spec"]["template"]), "kind": "Pod", "apiVersion": "v1"}
                pod["metadata"] |= {"name": key[2], "namespace": "default"}
                pod["metadata"]["ownerReferences"] = [{"kind": "StatefulSet", "name": name, "controller": True}]
                self._store(key, _as_stored(pod, None))
                running: list[Manifest] = [{"name": CONTAINER, "state": {"running": {}}}]
                self.objects[key]["status"] = {"podIP": f"192.0.2.{ordinal + 1}", "containerStatuses": running}
            self.set_ready(key[2], ready=ready)

    def set_ready(self, pod: str, *, ready: bool) -> None:
        """Set a pod's Ready condition."""
        status = self.objects["Pod", "default", pod]["status"]
        status["conditions"] = [{"type": "Ready", "status": "True" if ready else "False"}]

    def final_objects(self) -> dict[Name, str]:
        """Return what stands, for comparison: without uids, versions, statuses and nudges."""
        return {name: content_hash(_comparable(item)) for name, item in self.objects.items()}

    async def _write(self, what: str, effect: Callable[[], object]) -> None:
        self.before_write(what)
        self.writes.append(what)
        effect()
        self.after_write(what)

    def _store(self, name: Name, manifest: Manifest) -> None:
        self._clock += 1
        metadata = manifest["metadata"]
        metadata.setdefault("uid", f"uid-{self._clock}")
        metadata.setdefault("generation", 1)
        metadata.setdefault("creationTimestamp", self.created_at())
        metadata["resourceVersion"] = str(self._clock)
        self.objects[name] = manifest


class FakeReader:
    """What pods tell, as tests set it."""

    def __init__(self) -> None:
        self.members: dict[str, MemberStatus] = {}
        self.answer: OffsetsAnswer | None = None
        """What the brokers say."""
        self.asked = 0

    async def offsets(self, pods: Iterable[Pod]) -> OffsetsAnswer | None:
        """See MemberReader."""
        self.asked += 1
        return self.answer if any(pod.name in self.members for pod in pods) else None

    async def read(self, pods: Iterable[Pod]) -> dict[str, MemberStatus]:
        """See MemberReader."""
        return {pod.name: self.members[pod.name] for pod in pods if pod.name in self.members}

    def tell(self, name: str, revision: str, **fields: Any) -> None:
        """Let a pod report."""
        told: dict[str, Any] = {
            "member": name,
            "state": MemberState.RUNNING,
            "revision": revision,
            "epoch": 1,
            "rebalances": 0,
            "concurrency": 16,
            "in_flight": 0,
            "buffered": 0,
            "handled": 0,
            "failures": 0,
            "dead_lettered": 0,
            "results": 0,
            "skipped": 0,
            "metadata_errors": 0,
            "lag": 0,
            "kafka_reachable": True,
            "partitions": [],
            "started_at": 0.0,
            "at": 0.0,
        }
        self.members[name] = MemberStatus.model_validate({**told, **fields})


def _name(manifest: Manifest) -> Name:
    return manifest["kind"], manifest["metadata"]["namespace"], manifest["metadata"]["name"]


def _as_stored(manifest: Manifest, old: Manifest | None) -> Manifest:
    # Free-form fields of a custom object stay as they were written.
    result: Manifest = copy.deepcopy(manifest) if manifest["kind"] in _OURS else _rewritten(manifest)
    if result["kind"] == "Service":
        result["spec"].setdefault("internalTrafficPolicy", "Cluster")  # one default, for all
    if old is not None:
        result["metadata"] |= {key: old["metadata"][key] for key in _SERVER_FIELDS if key in old["metadata"]}
        if "status" in old:
            result["status"] = copy.deepcopy(old["status"])
    return result


def _rewritten(value: Any) -> Any:
    """Write quantities as the server does."""
    found = as_map(value)
    if found is not None:
        return {key: _rewritten(item) for key, item in found.items()}
    items = as_list(value)
    if items is not None:
        return [_rewritten(item) for item in items]
    return _QUANTITIES.get(value, value) if isinstance(value, str) else copy.deepcopy(value)


def _comparable(manifest: Manifest) -> Manifest:
    result: Manifest = copy.deepcopy(without_bookkeeping(manifest))
    (at(result, "metadata", "annotations") or {}).pop(Annotations.NUDGE, None)
    for reference in as_list(at(result, "metadata", "ownerReferences")) or []:
        reference.pop("uid", None)
    return result
