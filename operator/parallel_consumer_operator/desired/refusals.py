"""What a user may not write into `spec.template` and `spec.env`.

Creating a ParallelConsumer must not be a way to more power than the operator means to give. The API server cannot see
into free-form fields, so this is checked here.
"""

from collections.abc import Iterator
from typing import Any

from parallel_consumer_operator.desired.naming import CONTAINER, labels_of
from parallel_consumer_operator.desired.pod import RESERVED_ENV
from parallel_consumer_operator.untyped import as_list, as_map, at
from parallel_consumer_runtime.settings import API_GROUP, JsonObject, ParallelConsumerSpec

_HOST = "it reaches into the node"
_IDENTITY = "it gives the pod another identity"
_POD_FIELDS = {
    "serviceAccountName": _IDENTITY,
    "serviceAccount": _IDENTITY,
    "automountServiceAccountToken": "consumer pods carry no token",
    "hostNetwork": _HOST,
    "hostPID": _HOST,
    "hostIPC": _HOST,
    "restartPolicy": "a StatefulSet's pods always restart",
    "ephemeralContainers": "they belong to running pods only",
}
_SECURITY_FIELDS = ("privileged", "allowPrivilegeEscalation")
_NAMED_LISTS = ("volumes", "initContainers", "containers")


def refusals(spec: ParallelConsumerSpec) -> list[str]:
    """Return one sentence per refused field, each beginning with its path; empty when all is well."""
    return [*_metadata(spec.template), *_pod(spec.template), *_env(spec.env, "spec.env")]


def _metadata(template: JsonObject) -> Iterator[str]:
    for key in sorted(template.keys() - {"metadata", "spec"}):
        yield f"spec.template.{key}: unknown field; a pod template has metadata and spec"
    metadata = as_map(template.get("metadata", {}))
    if metadata is None:
        yield "spec.template.metadata: must be an object"
        return
    for kind, value in metadata.items():
        path = f"spec.template.metadata.{kind}"
        entries = as_map(value)
        if kind not in {"labels", "annotations"} or entries is None:
            yield f"{path}: only labels and annotations may be set, as maps"
            continue
        for key in entries:
            if key.startswith(f"{API_GROUP}/") or key in labels_of(""):
                yield f"{path}.{key}: is the operator's own"


def _pod(template: JsonObject) -> Iterator[str]:
    pod = as_map(template.get("spec", {}))
    if pod is None:
        yield "spec.template.spec: must be an object"
        return
    for field, reason in _POD_FIELDS.items():
        if field in pod:
            yield f"spec.template.spec.{field}: may not be set: {reason}"
    for field in _NAMED_LISTS:
        path = f"spec.template.spec.{field}"
        items = _named(pod.get(field, []))
        if items is None:
            yield f"{path}: must be a list of objects, each with a name"
            continue
        for place, item in enumerate(items):
            yield from (_volume if field == "volumes" else _container)(item, f"{path}[{place}]")


def _volume(volume: JsonObject, path: str) -> Iterator[str]:
    if "hostPath" in volume:
        yield f"{path}.hostPath: may not be set: {_HOST}"
    if volume["name"] in {"live", "tmp"}:
        yield f"{path}.name: {volume['name']!r} is the operator's own"
    for source in as_list(at(volume, "projected", "sources")) or []:
        if "serviceAccountToken" in (as_map(source) or {}):
            yield f"{path}.projected: may not hold a serviceAccountToken: consumer pods carry no token"


def _container(container: JsonObject, path: str) -> Iterator[str]:
    for field in _SECURITY_FIELDS:
        if at(container, "securityContext", field):
            yield f"{path}.securityContext.{field}: may not be set: {_HOST}"
    env = _named(container.get("env", []))
    if env is None:
        yield f"{path}.env: must be a list of objects, each with a name"
    elif container["name"] == CONTAINER:
        yield from _env(env, f"{path}.env")


def _env(env: list[JsonObject], path: str) -> Iterator[str]:
    seen: set[str] = set()
    for place, variable in enumerate(env):
        name = variable.get("name")
        if not isinstance(name, str) or not name:
            yield f"{path}[{place}].name: is required; add it"
        elif name in RESERVED_ENV:
            yield f"{path}[{place}].name: {name} is set by the operator; choose another"
        elif name in seen:
            yield f"{path}[{place}].name: {name} is there twice; remove one"
        else:
            seen.add(name)


def _named(value: Any) -> list[JsonObject] | None:
    """Return the list when each of its items is an object with a name."""
    items = as_list(value)
    if items is None or not all(isinstance(at(item, "name"), str) for item in items):
        return None
    return items
