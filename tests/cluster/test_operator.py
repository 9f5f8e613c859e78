"""The operator on a real API server: children, ownership, repair, silence when settled, refusals in words, rights."""

import json
import urllib.request
from typing import Any

import pytest

from tests.support.cluster.kubectl import KubectlError, apply, get, items, kubectl, wait_for
from tests.support.corpus import changed, manifest
from tests.support.waiting import wait_until

CHILDREN = {
    "configmap": "orders-runtime",
    "serviceaccount": "orders-runtime",
    "service": "orders-members",
    "poddisruptionbudget": "orders",
    "statefulset": "orders",
}
HOME = "parallel-consumer"
ACCOUNT = f"system:serviceaccount:{HOME}:parallel-consumer-operator"
pytestmark = pytest.mark.usefixtures("operator")


def condition(found: Any, kind: str) -> dict[str, Any]:
    """Return one condition of an object, empty when it is not there."""
    conditions: list[dict[str, Any]] = found.get("status", {}).get("conditions", [])
    nothing: dict[str, Any] = {}
    return next((item for item in conditions if item["type"] == kind), nothing)


def settled(found: Any) -> bool:
    """Whether the operator has said that there is nothing to do for the newest spec."""
    current = found.get("status", {}).get("observedGeneration") == found["metadata"]["generation"]
    return current and condition(found, "Reconciling").get("status") == "False"


def await_settled(namespace: str, timeout_s: float = 30) -> Any:
    """Return the object once it is settled."""
    return wait_for("pcon", "orders", "settled", settled, timeout_s=timeout_s, namespace=namespace)


def mine(namespace: str, **changes: Any) -> dict[str, Any]:
    """Return a manifest without pods: all but consuming can be seen without a broker."""
    wished: dict[str, Any] = {"metadata__namespace": namespace, "spec__replicas": 0, **changes}
    return manifest("orders", **wished)


def children(namespace: str) -> dict[str, Any]:
    """Return the children that exist, by kind."""
    found = {kind: get(kind, name, namespace) for kind, name in CHILDREN.items()}
    return {kind: child for kind, child in found.items() if child is not None}


def reconciles() -> float:
    """Return how many reconciles the operator has ended well."""
    (pod,) = [item for item in items("pods", HOME) if "deletionTimestamp" not in item["metadata"]]
    with urllib.request.urlopen(f"http://{pod['status']['podIP']}:8081/metrics", timeout=5) as answer:
        lines = answer.read().decode().splitlines()
    name = 'parallel_consumer_operator_reconciles_total{outcome="done"}'
    return next((float(line.split()[-1]) for line in lines if line.startswith(name)), 0.0)


def test_children_belong_to_their_object_and_go_with_it(namespace: str) -> None:
    """One apply makes five children; one delete takes them all, without a finalizer on the user's object."""
    apply(mine(namespace), namespace)
    found = await_settled(namespace)
    assert "finalizers" not in found["metadata"]
    assert set(found["metadata"]["annotations"]) == {"kubectl.kubernetes.io/last-applied-configuration"}
    made = children(namespace)
    assert set(made) == set(CHILDREN)
    for child in made.values():
        (owner,) = child["metadata"]["ownerReferences"]
        assert (owner["uid"], owner["controller"]) == (found["metadata"]["uid"], True)
    kubectl("delete", "pcon", "orders", "--timeout=30s", namespace=namespace)
    wait_until(lambda: not children(namespace), "children are collected", 60, state=lambda: set(children(namespace)))


def test_a_settled_object_is_left_alone(namespace: str) -> None:
    """A reconcile that finds nothing to do writes nothing: no version moves."""
    resources = {"requests": {"memory": "1024Mi", "cpu": "0.5"}, "limits": {"memory": "2048Mi"}}
    apply(mine(namespace, spec__resources=resources), namespace)
    await_settled(namespace)
    before = {kind: child["metadata"]["resourceVersion"] for kind, child in children(namespace).items()}
    counted = reconciles()
    kubectl("label", "pcon", "orders", "looked=at", namespace=namespace)
    touched = get("pcon", "orders", namespace)["metadata"]["resourceVersion"]
    wait_until(lambda: reconciles() > counted, "the operator looked again", 30)
    after = {kind: child["metadata"]["resourceVersion"] for kind, child in children(namespace).items()}
    assert after == before
    assert get("pcon", "orders", namespace)["metadata"]["resourceVersion"] == touched


def test_drift_is_repaired(namespace: str) -> None:
    """A child that someone scales or deletes is put back."""
    apply(mine(namespace), namespace)
    await_settled(namespace)
    kubectl("delete", "configmap", CHILDREN["configmap"], namespace=namespace)
    kubectl("patch", "service", CHILDREN["service"], "--patch", '{"spec":{"selector":{"a":"b"}}}', namespace=namespace)

    def repaired() -> bool:
        made = children(namespace)
        selector = made["service"]["spec"]["selector"]
        return "configmap" in made and selector["parallelconsumer.io/name"] == "orders"

    wait_until(repaired, "the children are as wished", 30, state=lambda: set(children(namespace)))


def test_an_operator_that_is_killed_goes_on_where_it_was(namespace: str) -> None:
    """SIGKILL, and a spec and a child that change meanwhile: the next one converges."""
    apply(mine(namespace), namespace)
    await_settled(namespace)
    kubectl("delete", "pods", "--all", "--grace-period=0", "--force", namespace=HOME)
    kubectl("delete", "service", CHILDREN["service"], namespace=namespace)
    apply(mine(namespace, spec__processing={"concurrency": {"fixed": 321}}), namespace)
    await_settled(namespace, 90)
    live = json.loads(get("configmap", CHILDREN["configmap"], namespace)["data"]["live.json"])
    assert live["concurrency"] == {"fixed": 321}
    wait_until(lambda: set(children(namespace)) == set(CHILDREN), "every child is there", 30)


def test_a_template_that_reaches_too_far_is_refused_in_words(namespace: str) -> None:
    """The condition names the path; nothing is made; a corrected spec goes ahead."""
    apply(mine(namespace, spec__template={"spec": {"hostNetwork": True}}), namespace)
    refused = wait_for(
        "pcon",
        "orders",
        "refused",
        lambda found: condition(found, "Ready").get("reason") == "TemplateRefused",
        timeout_s=30,
        namespace=namespace,
    )
    assert condition(refused, "Ready")["message"].startswith("spec.template.spec.hostNetwork:")
    assert children(namespace) == {}
    apply(mine(namespace, spec__template={"spec": {"priorityClassName": ""}}), namespace)
    await_settled(namespace)
    assert set(children(namespace)) == set(CHILDREN)


@pytest.mark.parametrize("wrong", [{"tolerations": "all"}, {"nodeSelector": {"-": "x"}}], ids=["type", "value"])
def test_a_child_that_the_server_refuses_is_told_in_its_words(namespace: str, wrong: dict[str, Any]) -> None:
    """What only the API server knows of a pod becomes a condition, not a crash loop."""
    apply(mine(namespace, spec__template={"spec": wrong}), namespace)
    refused = wait_for(
        "pcon",
        "orders",
        "refused",
        lambda found: condition(found, "Ready").get("reason") == "ChildRefused",
        timeout_s=30,
        namespace=namespace,
    )
    assert "StatefulSet" in condition(refused, "Ready")["message"]


def test_a_handler_that_does_not_import_is_told_in_the_status(namespace: str) -> None:
    """The container's last words reach the condition, and an event tells of it."""
    nothing = {"spec__image": "flights:1", "spec__imagePullPolicy": "Never", "spec__handler": "flights.nothing:at_all"}
    apply(mine(namespace, spec__replicas=1, **nothing), namespace)
    failing = wait_for(
        "pcon",
        "orders",
        "says why its pod fails",
        lambda found: condition(found, "Ready").get("reason") == "PodFailing",
        timeout_s=60,
        namespace=namespace,
    )
    assert "flights.nothing" in condition(failing, "Ready")["message"]
    assert failing["status"]["state"] == "Degraded"
    assert "lag" not in failing["status"], "nobody knows it"
    selector = "--field-selector=reason=PodFailing,type=Warning"
    wait_until(
        lambda: kubectl("get", "events.v1.events.k8s.io", selector, "--output=name", namespace=namespace).split(),
        "an event tells of it",
        30,
    )
    # The corrected template must reach the pod although it is not ready.
    apply(mine(namespace, spec__replicas=1, **{**nothing, "spec__handler": "flights.other:at_all"}), namespace)
    wait_for(
        "pcon",
        "orders",
        "runs the new template",
        lambda found: "flights.other" in condition(found, "Ready").get("message", ""),
        timeout_s=90,
        namespace=namespace,
    )


def test_two_objects_of_one_group_are_two_objects(namespace: str) -> None:
    """Each object has children of its own; a name is never shared."""
    apply(mine(namespace), namespace)
    apply(changed(mine(namespace), {"metadata.name": "orders-b"}), namespace)
    for name in ("orders", "orders-b"):
        wait_for("pcon", name, "settled", settled, timeout_s=30, namespace=namespace)
    uids = {
        get("statefulset", name, namespace)["metadata"]["ownerReferences"][0]["uid"] for name in ("orders", "orders-b")
    }
    assert len(uids) == 2


@pytest.mark.parametrize(
    ("verb", "resource"),
    [
        ("get", "secrets"),
        ("create", "pods"),
        ("delete", "statefulsets.apps"),
        ("patch", "parallelconsumers"),
        ("get", "nodes"),
    ],
)
def test_the_operators_role_is_small(verb: str, resource: str) -> None:
    """It reads no Secret, makes no pod itself, deletes no set, and cannot write a user's spec."""
    with pytest.raises(KubectlError):
        kubectl("auth", "can-i", verb, resource, f"--as={ACCOUNT}", "--all-namespaces")
