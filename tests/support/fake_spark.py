"""A cluster in memory in which SparkJobs run: it plays the Job controller, the kubelet and Spark, and an operator that may die."""

import asyncio
import copy
from datetime import UTC, datetime
from typing import Any

from parallel_consumer_operator.desired.naming import Manifest
from parallel_consumer_operator.desired.spark.naming import ATTEMPT, DRIVER, EXECUTOR, executor_prefix, spark_labels
from parallel_consumer_operator.kube import Key
from parallel_consumer_operator.reconcile import SparkJobReconciler
from parallel_consumer_operator.reconcile.writing import StatusWriter
from parallel_consumer_operator.untyped import as_list, at
from parallel_consumer_runtime.settings.spark import SPARK_JOB_KIND
from tests.support.corpus import changed
from tests.support.fake_kube import FakeKube

NAME = "archive"
KEY = Key("default", NAME, SPARK_JOB_KIND)
START_S = 1_767_323_045.0


def spark_job(name: str = NAME, **changes: Any) -> Manifest:
    """Return a minimal valid object with fields set by path, `__` for dots."""
    return changed(
        {
            "apiVersion": "parallelconsumer.io/v1alpha1",
            "kind": SPARK_JOB_KIND,
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"image": "spark:1", "mainApplicationFile": "local:///opt/app/archive.py"},
        },
        {path.replace("__", "."): value for path, value in changes.items()},
    )


class SparkWorld:
    """A cluster, a clock, and an operator that can be killed."""

    def __init__(self, **changes: Any) -> None:
        self.kube = FakeKube()
        self.now_s = START_S
        self.kube.created_at = self.stamp
        self.kube.user_applies(spark_job(**changes))
        self.restart()

    def restart(self) -> None:
        """Forget everything the operator remembered."""
        writer = StatusWriter(self.kube, "test", self.now)
        self.reconciler = SparkJobReconciler(self.kube, writer, "spark", lambda: self.now_s, self.now)

    def now(self) -> datetime:
        """Return the wall clock's time."""
        return datetime.fromtimestamp(self.now_s, UTC)

    def stamp(self) -> str:
        """Return the time as the API server writes it."""
        return self.now().strftime("%Y-%m-%dT%H:%M:%SZ")

    def reconcile(self) -> float | None:
        """Reconcile once."""
        return asyncio.run(self.reconciler.reconcile(KEY))

    def step(self, passed_s: float = 1.0) -> list[str]:
        """Reconcile once, later; return the writes."""
        self.now_s += passed_s
        before = len(self.kube.writes)
        self.reconcile()
        return self.kube.writes[before:]

    def settle(self) -> None:
        """Reconcile until nothing is written."""
        for _ in range(10):
            if not self.step(2):
                return
        raise AssertionError(self.kube.writes)

    def suspend(self, *, suspended: bool) -> None:
        """Let the user set `suspend`."""
        wished = copy.deepcopy(self.job)
        wished["spec"]["suspend"] = suspended
        self.kube.user_applies(wished)

    @property
    def job(self) -> Manifest:
        """The SparkJob."""
        return self.kube.objects[SPARK_JOB_KIND, "default", NAME]

    @property
    def status(self) -> dict[str, Any]:
        """Its status."""
        found: dict[str, Any] = self.job["status"]
        return found

    @property
    def state(self) -> str:
        """Its state."""
        return str(self.status["state"])

    def condition(self, kind: str) -> tuple[str, str, str]:
        """Return a condition's status, reason and message."""
        found = next(item for item in self.status["conditions"] if item["type"] == kind)
        return found["status"], found["reason"], found["message"]

    def batch_job(self, attempt: int = 1) -> Manifest:
        """Return an attempt's Job."""
        return self.kube.objects["Job", "default", f"{NAME}-{attempt}"]

    def batch_jobs(self) -> list[str]:
        """Return the names of the Jobs."""
        return sorted(name for kind, _, name in self.kube.objects if kind == "Job")

    def pod(self, name: str) -> Manifest:
        """Return a pod."""
        return self.kube.objects["Pod", "default", name]

    # What the cluster does

    def driver_comes(self, attempt: int = 1) -> str:
        """Let the Job's controller make the driver's pod; return its name."""
        job, name = self.batch_job(attempt), f"{NAME}-{attempt}-x"
        template = copy.deepcopy(job["spec"]["template"])
        owner = {"kind": "Job", "name": job["metadata"]["name"], "uid": job["metadata"]["uid"], "controller": True}
        metadata = {**template["metadata"], "name": name, "namespace": "default", "ownerReferences": [owner]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
        self._place(pod, "Pending", [])
        return name

    def executor_comes(self, number: int = 1, attempt: int = 1) -> str:
        """Let the driver make an executor; return its name."""
        name, driver = f"{executor_prefix(NAME, attempt)}-exec-{number}", f"{NAME}-{attempt}-x"
        owner = {"kind": "Pod", "name": driver, "uid": self.pod(driver)["metadata"]["uid"], "controller": True}
        labels = {**spark_labels(NAME, EXECUTOR), ATTEMPT: str(attempt), "spark-app-selector": f"spark-{attempt}"}
        metadata = {"name": name, "namespace": "default", "labels": labels, "ownerReferences": [owner]}
        spec = {"containers": [{"name": EXECUTOR, "image": "spark:1"}]}
        self._place({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}, "Pending", [])
        return name

    def runs(self, pod: str) -> None:
        """Let a pod's container run."""
        self._state(pod, "Running", {"running": {"startedAt": self.stamp()}})
        self.pod(pod)["spec"]["nodeName"] = "n1"

    def waits(self, pod: str, reason: str, message: str) -> None:
        """Let a pod's container wait for something."""
        self._state(pod, "Pending", {"waiting": {"reason": reason, "message": message}})

    def ends(self, pod: str, code: int, reason: str = "", message: str = "") -> None:
        """Let a pod's container end."""
        statuses = as_list(at(self.pod(pod), "status", "containerStatuses")) or [{}]
        ended: Manifest = {
            "exitCode": code,
            "reason": reason or ("Error" if code else "Completed"),
            "message": message,
            "startedAt": at(statuses[0], "state", "running", "startedAt") or self.stamp(),
            "finishedAt": self.stamp(),
        }
        self._state(pod, "Failed" if code else "Succeeded", {"terminated": ended})

    def job_says(self, kind: str, attempt: int = 1) -> None:
        """Let the Job's controller say Complete or Failed."""
        said = {"type": kind, "status": "True", "lastTransitionTime": self.stamp(), "message": "backoff limit"}
        self.batch_job(attempt)["status"] = {"conditions": [said]}

    def pods_of_suspended_go(self) -> None:
        """Let the Job's controller delete the drivers of suspended Jobs; executors go with them."""
        for key, job in list(self.kube.objects.items()):
            if key[0] != "Job" or not job["spec"].get("suspend"):
                continue
            for other, pod in list(self.kube.objects.items()):
                references = pod["metadata"].get("ownerReferences", [])
                if other[0] == "Pod" and any(item["uid"] == job["metadata"]["uid"] for item in references):
                    self.kube.collect(other)

    def running(self, attempt: int = 1, executors: int = 1) -> str:
        """Bring an attempt to where it runs; return the driver's name."""
        self.settle()
        driver = self.driver_comes(attempt)
        self.runs(driver)
        for number in range(1, executors + 1):
            self.runs(self.executor_comes(number, attempt))
        self.settle()
        return driver

    def fails(self, driver: str, code: int = 1, reason: str = "", attempt: int = 1, log: str = "") -> None:
        """Let a driver end badly, and its Job say so."""
        self.kube.logs[driver] = log
        self.ends(driver, code, reason)
        self.job_says("Failed", attempt)

    def _place(self, pod: Manifest, phase: str, statuses: list[Manifest]) -> None:
        self.kube.user_applies(pod)
        self.pod(pod["metadata"]["name"])["status"] = {"phase": phase, "containerStatuses": statuses}

    def _state(self, pod: str, phase: str, state: Manifest) -> None:
        role = self.pod(pod)["metadata"]["labels"]["parallelconsumer.io/role"]
        assert role in {DRIVER, EXECUTOR}
        self.pod(pod).setdefault("status", {}).update(phase=phase, containerStatuses=[{"name": role, "state": state}])
