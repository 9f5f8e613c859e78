"""The main job on real parts: one manifest, two pods, a real topic drained in parallel, its concurrency changed live."""

import json
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from flights import checker, data, loader
from parallel_consumer_runtime.settings import MemberStatus
from tests.support.cluster.kubectl import items, kubectl, wait_for
from tests.support.cluster.network import serve_kafka
from tests.support.kafka import KafkaBroker
from tests.support.waiting import wait_until

EXAMPLE = Path("examples/flights/consumer.yaml")
FIRST_RECORD_MAX_S = 15.0
PATCH_MAX_S = 5.0
DRAIN_MAX_S = 180.0
SELECTOR = "parallelconsumer.io/name=flights"
pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(400)]


def statuses(namespace: str) -> list[MemberStatus]:
    """Return what every pod tells at /status; those that do not answer yet are left out."""
    found: list[MemberStatus] = []
    for pod in items("pods", namespace, SELECTOR):
        try:
            with urllib.request.urlopen(f"http://{pod['status']['podIP']}:8080/status", timeout=2) as answer:
                found.append(MemberStatus.model_validate_json(answer.read()))
        except (OSError, KeyError):
            continue
    return found


def container_ids(namespace: str) -> dict[str, str]:
    """Return each pod's container."""
    pods = items("pods", namespace, SELECTOR)
    return {pod["metadata"]["name"]: pod["status"]["containerStatuses"][0]["containerID"] for pod in pods}


def conditions(found: Any) -> dict[str, str]:
    """Return an object's conditions: status by type."""
    return {condition["type"]: condition["status"] for condition in found.get("status", {}).get("conditions", [])}


@pytest.mark.usefixtures("operator")
def test_one_manifest_drains_a_real_topic(namespace: str, kafka: KafkaBroker, node_address: str) -> None:
    """Everything that the first acceptance of the project promises, in the order in which a user would see it."""
    kafka.create_topic(loader.TOPIC, loader.PARTITIONS)
    kafka.create_topic(checker.TOPIC, checker.PARTITIONS)
    flights = data.read()
    loader.Loader(kafka.bootstrap, None).load(flights)
    judge = checker.Checker(kafka.bootstrap, checker.one_pass(flights))
    serve_kafka(namespace, node_address)

    applied_at = time.time()
    kubectl("apply", f"--filename={EXAMPLE}", namespace=namespace)

    def handling() -> list[float] | None:
        found = [status.first_handled_at for status in statuses(namespace)]
        return [at for at in found if at is not None] if len(found) == 2 and None not in found else None

    first_s = min(wait_until(handling, "both pods handle records", 60)) - applied_at
    print(f"kubectl apply to the first record handled: {first_s:.1f} s")
    assert first_s <= FIRST_RECORD_MAX_S

    ready = wait_for(
        "pcon", "flights", "is ready", lambda o: conditions(o).get("Ready") == "True", timeout_s=30, namespace=namespace
    )
    assert ready["status"]["readyReplicas"] == 2
    group, containers = kafka.group("flights"), container_ids(namespace)
    assert sorted(str(member.instance_id) for member in group.members) == ["flights-0", "flights-1"]

    patched_at = time.monotonic()
    patch = json.dumps({"spec": {"processing": {"concurrency": {"fixed": 200}}}})
    kubectl("patch", "pcon", "flights", "--type=merge", f"--patch={patch}", namespace=namespace)
    wait_until(
        lambda: [status.concurrency for status in statuses(namespace)] == [200, 200], "both pods run 200 at once", 30
    )
    patch_s = time.monotonic() - patched_at
    print(f"kubectl patch to both pods' acknowledgement: {patch_s:.1f} s")
    assert patch_s <= PATCH_MAX_S
    assert container_ids(namespace) == containers
    assert kafka.group("flights") == group, "generation, member ids and assignment are as before"

    drained_by = time.monotonic() + DRAIN_MAX_S
    verdict = judge.run(lambda: time.monotonic() > drained_by)
    print(f"results beside the one-pass computation: {verdict}")
    assert verdict.good

    def drained(found: Any) -> bool:
        status = found.get("status", {})
        settled = all(
            conditions(found).get(name) == "True" for name in ("Ready", "ConcurrencyApplied", "KafkaReachable")
        )
        return settled and status.get("lag") == 0 and status.get("concurrency") == 400

    wait_for("pcon", "flights", "lag 0, concurrency 400", drained, timeout_s=30, namespace=namespace)
    shown = kubectl("get", "pcon", "flights", "--no-headers", namespace=namespace).split()
    print(kubectl("get", "pcon", namespace=namespace))
    assert shown[:7] == ["flights", "flights", "2", "2", "400", "0", "Running"]

    kubectl("delete", "pod", "flights-1", "--wait=false", namespace=namespace)

    def back() -> bool:
        now = container_ids(namespace)
        renewed = now.get("flights-1") not in {None, containers["flights-1"]}
        return renewed and len([s for s in statuses(namespace) if s.partitions]) == 2

    wait_until(lambda: _quietly(back), "the deleted pod is back and owns its partitions", 60)
    after = kafka.group("flights")
    assert after.generation == group.generation
    assert [m.instance_id for m in after.members] == [m.instance_id for m in group.members]
    assert container_ids(namespace)["flights-0"] == containers["flights-0"]


def _quietly(probe: Any) -> bool:
    """Ask while a pod comes and goes: one without containers is not there yet."""
    try:
        return bool(probe())
    except KeyError:
        return False
