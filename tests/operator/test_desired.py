"""Children are pure functions of the spec; pods are restricted; what may not be set is refused by path."""

import json
from typing import Any

import pytest

from parallel_consumer_operator.api import ParallelConsumer
from parallel_consumer_operator.desired import CONTAINER, Children, render_children
from parallel_consumer_operator.desired.refusals import refusals
from parallel_consumer_runtime.settings import STATIC_ENV, LiveSettings, StaticSettings
from tests.support.corpus import manifest


def _children(wanted: int = 2, existing: int = 2, **changes: Any) -> Children:
    consumer = ParallelConsumer.parse(manifest(metadata__uid="u-1", **changes))
    assert refusals(consumer.spec) == []
    return render_children(consumer.identity, consumer.spec, wanted=wanted, existing=existing)


def _child(children: Children, kind: str) -> dict[str, Any]:
    return next(child for child in children.manifests if child["kind"] == kind)


def _pod(children: Children) -> dict[str, Any]:
    pod: dict[str, Any] = _child(children, "StatefulSet")["spec"]["template"]["spec"]
    return pod


def _consumer(children: Children) -> dict[str, Any]:
    return next(container for container in _pod(children)["containers"] if container["name"] == CONTAINER)


def _refusals(**changes: Any) -> list[str]:
    return refusals(ParallelConsumer.parse(manifest(metadata__uid="u-1", **changes)).spec)


def test_every_child_belongs_to_its_owner() -> None:
    """Deleting the owner deletes the children, and only one controller owns each."""
    for child in _children().manifests:
        (owner,) = child["metadata"]["ownerReferences"]
        assert (owner["uid"], owner["controller"], owner["blockOwnerDeletion"]) == ("u-1", True, True)
        assert child["metadata"]["labels"]["parallelconsumer.io/name"] == "orders"


def test_the_statefulset_leaves_restarts_to_the_operator() -> None:
    """Pods start together and are replaced only when deleted."""
    spec = _child(_children(existing=3), "StatefulSet")["spec"]
    assert spec["replicas"] == 3
    assert spec["podManagementPolicy"] == "Parallel"
    assert spec["updateStrategy"] == {"type": "OnDelete"}
    assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()


def test_pods_satisfy_the_restricted_level() -> None:
    """A namespace that enforces restricted pod security admits them."""
    pod, container = _pod(_children()), _consumer(_children())
    assert pod["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert pod["automountServiceAccountToken"] is False
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_a_pod_is_killed_only_after_its_drain() -> None:
    """The grace period is the drain and 15 s."""
    assert _pod(_children(spec__processing={"drainTimeout": "2m"}))["terminationGracePeriodSeconds"] == 145


def test_pods_read_what_the_runtime_writes() -> None:
    """The static half in the environment and the live half in the ConfigMap are the runtime's own models."""
    children = _children(spec__processing={"concurrency": {"min": 8, "max": 500}})
    env = {item["name"]: item.get("value") for item in _consumer(children)["env"]}
    static = StaticSettings.model_validate_json(env[STATIC_ENV] or "")
    assert static.kafka.group_id == "orders"
    live = LiveSettings.model_validate_json(_child(children, "ConfigMap")["data"]["live.json"])
    assert live == children.live
    assert live.concurrency.bounds == (8, 500)


def test_live_settings_leave_the_pod_template_alone() -> None:
    """Concurrency, retries, pause and replicas change no pod; the revision says that they changed."""
    before = _children()
    after = _children(wanted=4, existing=4, spec__processing={"concurrency": {"fixed": 99}, "paused": True})
    assert after.template_hash == before.template_hash
    assert after.live.revision != before.live.revision


def test_the_static_half_and_the_image_change_the_template() -> None:
    """A new image, handler or topic makes pods outdated."""
    before = _children()
    changes: list[dict[str, Any]] = [
        {"spec__image": "orders:2"},
        {"spec__kafka__topics": ["other"]},
        {"spec__env": [{"name": "A", "value": "b"}]},
    ]
    for change in changes:
        assert _children(**change).template_hash != before.template_hash


def test_resources_have_a_hash_of_their_own() -> None:
    """A change of resources leaves the template hash, so that a resize in place is no roll."""
    before, after = _children(), _children(spec__resources={"limits": {"memory": "1Gi"}})
    assert after.template_hash == before.template_hash
    assert after.resources_hash != before.resources_hash
    assert _consumer(after)["resources"] == {"limits": {"memory": "1Gi"}}


def test_a_template_is_merged_by_container_volume_and_mount() -> None:
    """A user adds to the consumer container, adds a sidecar and a volume, and keeps everything rendered."""
    children = _children(
        spec__template={
            "metadata": {"labels": {"team": "x"}},
            "spec": {
                "nodeSelector": {"disk": "ssd"},
                "volumes": [{"name": "models", "emptyDir": {}}],
                "containers": [
                    {"name": "consumer", "volumeMounts": [{"name": "models", "mountPath": "/models"}]},
                    {"name": "proxy", "image": "proxy:1"},
                ],
            },
        }
    )
    mounts = {mount["mountPath"] for mount in _consumer(children)["volumeMounts"]}
    assert mounts == {"/etc/parallel-consumer", "/tmp", "/models"}
    assert [container["name"] for container in _pod(children)["containers"]] == ["consumer", "proxy"]
    assert [volume["name"] for volume in _pod(children)["volumes"]] == ["live", "tmp", "models"]
    assert _consumer(children)["image"] == "orders:1"


def test_rendering_twice_gives_the_same_bytes() -> None:
    """A hash changes only when the wish does."""
    assert json.dumps(_children().manifests) == json.dumps(_children().manifests)


_TOO_FAR: list[tuple[dict[str, Any], str]] = [
    ({"hostNetwork": True}, "spec.template.spec.hostNetwork"),
    ({"hostPID": True}, "spec.template.spec.hostPID"),
    ({"hostIPC": True}, "spec.template.spec.hostIPC"),
    ({"serviceAccountName": "admin"}, "spec.template.spec.serviceAccountName"),
    ({"serviceAccount": "admin"}, "spec.template.spec.serviceAccount"),
    ({"automountServiceAccountToken": True}, "spec.template.spec.automountServiceAccountToken"),
    ({"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}, "spec.template.spec.volumes[0].hostPath"),
    ({"volumes": [{"name": "live", "emptyDir": {}}]}, "spec.template.spec.volumes[0].name"),
    (
        {"volumes": [{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]},
        "spec.template.spec.volumes[0].projected",
    ),
    (
        {"containers": [{"name": "consumer", "securityContext": {"privileged": True}}]},
        "spec.template.spec.containers[0].securityContext.privileged",
    ),
    (
        {"initContainers": [{"name": "i", "securityContext": {"privileged": True}}]},
        "spec.template.spec.initContainers[0].securityContext.privileged",
    ),
    ({"containers": "all"}, "spec.template.spec.containers"),
    ({"containers": [{"image": "x"}]}, "spec.template.spec.containers"),
    (
        {"containers": [{"name": "consumer", "env": [{"name": "POD_NAME", "value": "x"}]}]},
        "spec.template.spec.containers[0].env[0].name",
    ),
]


@pytest.mark.parametrize(("pod", "path"), _TOO_FAR)
def test_a_template_that_reaches_too_far_is_refused_by_path(pod: dict[str, Any], path: str) -> None:
    """Whoever may create a ParallelConsumer gains no node and no identity by it."""
    assert any(line.startswith(f"{path}:") for line in _refusals(spec__template={"spec": pod}))


def test_reserved_and_repeated_variables_are_refused_by_path() -> None:
    """A user's variable neither hides the operator's nor appears twice."""
    env = [
        {"name": "A", "value": "1"},
        {"name": STATIC_ENV, "value": "{}"},
        {"name": "A", "value": "2"},
        {"value": "3"},
    ]
    assert [line.partition(":")[0] for line in _refusals(spec__env=env)] == [
        "spec.env[1].name",
        "spec.env[2].name",
        "spec.env[3].name",
    ]


def test_the_operators_own_labels_are_refused() -> None:
    """A template cannot take its pods out of the operator's sight."""
    (line,) = _refusals(spec__template={"metadata": {"labels": {"parallelconsumer.io/name": "other"}}})
    assert line.startswith("spec.template.metadata.labels.parallelconsumer.io/name:")
