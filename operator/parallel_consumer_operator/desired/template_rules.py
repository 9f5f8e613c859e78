"""What a user may not write into a pod template and into `env`, whichever kind they stand in.

Creating one of our objects must not be a way to more power than the operator means to give. The API server cannot see
into free-form fields, so this is checked here.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from parallel_consumer_operator.desired.naming import labels_of
from parallel_consumer_operator.untyped import as_list, as_map, at
from parallel_consumer_runtime.settings import API_GROUP, JsonObject

_HOST = "it reaches into the node"
_IDENTITY = "it gives the pod another identity"
_POD_FIELDS = {
    "serviceAccountName": _IDENTITY,
    "serviceAccount": _IDENTITY,
    "hostNetwork": _HOST,
    "hostPID": _HOST,
    "hostIPC": _HOST,
    "ephemeralContainers": "they belong to running pods only",
}
_SECURITY_FIELDS = ("privileged", "allowPrivilegeEscalation")
_NAMED_LISTS = ("volumes", "initContainers", "containers")


@dataclass(frozen=True, slots=True)
class TemplateRules:
    """What differs between kinds."""

    container: str
    """The container that the operator owns."""
    reserved_env: Callable[[str], bool]
    """Whether a variable is the operator's to set."""
    reserved_volumes: Collection[str]
    """Names of volumes that are the operator's."""
    pod_fields: Mapping[str, str]
    """Further fields of the pod that may not be set, each with the reason."""
    token: str
    """Why a volume may hold no token."""


def template_refusals(template: JsonObject, path: str, rules: TemplateRules) -> Iterator[str]:
    """Yield one sentence per refused field, each beginning with its path."""
    yield from _metadata(template, path)
    yield from _pod(template, path, rules)


def env_refusals(env: list[JsonObject], path: str, rules: TemplateRules) -> Iterator[str]:
    """Yield one sentence per refused variable, each beginning with its path."""
    seen: set[str] = set()
    for place, variable in enumerate(env):
        name = variable.get("name")
        if not isinstance(name, str) or not name:
            yield f"{path}[{place}].name: is required; add it"
        elif rules.reserved_env(name):
            yield f"{path}[{place}].name: {name} is set by the operator; choose another"
        elif name in seen:
            yield f"{path}[{place}].name: {name} is there twice; remove one"
        else:
            seen.add(name)


def _metadata(template: JsonObject, path: str) -> Iterator[str]:
    for key in sorted(template.keys() - {"metadata", "spec"}):
        yield f"{path}.{key}: unknown field; a pod template has metadata and spec"
    metadata = as_map(template.get("metadata", {}))
    if metadata is None:
        yield f"{path}.metadata: must be an object"
        return
    for kind, value in metadata.items():
        place = f"{path}.metadata.{kind}"
        entries = as_map(value)
        if kind not in {"labels", "annotations"} or entries is None:
            yield f"{place}: only labels and annotations may be set, as maps"
            continue
        for key in entries:
            if key.startswith(f"{API_GROUP}/") or key in labels_of(""):
                yield f"{place}.{key}: is the operator's own"


def _pod(template: JsonObject, path: str, rules: TemplateRules) -> Iterator[str]:
    pod = as_map(template.get("spec", {}))
    if pod is None:
        yield f"{path}.spec: must be an object"
        return
    for field, reason in {**_POD_FIELDS, **rules.pod_fields}.items():
        if field in pod:
            yield f"{path}.spec.{field}: may not be set: {reason}"
    for field in _NAMED_LISTS:
        place = f"{path}.spec.{field}"
        items = _named(pod.get(field, []))
        if items is None:
            yield f"{place}: must be a list of objects, each with a name"
            continue
        for number, item in enumerate(items):
            yield from (_volume if field == "volumes" else _container)(item, f"{place}[{number}]", rules)


def _volume(volume: JsonObject, path: str, rules: TemplateRules) -> Iterator[str]:
    if "hostPath" in volume:
        yield f"{path}.hostPath: may not be set: {_HOST}"
    if volume["name"] in rules.reserved_volumes:
        yield f"{path}.name: {volume['name']!r} is the operator's own"
    for source in as_list(at(volume, "projected", "sources")) or []:
        if "serviceAccountToken" in (as_map(source) or {}):
            yield f"{path}.projected: may not hold a serviceAccountToken: {rules.token}"


def _container(container: JsonObject, path: str, rules: TemplateRules) -> Iterator[str]:
    for field in _SECURITY_FIELDS:
        if at(container, "securityContext", field):
            yield f"{path}.securityContext.{field}: may not be set: {_HOST}"
    env = _named(container.get("env", []))
    if env is None:
        yield f"{path}.env: must be a list of objects, each with a name"
    elif container["name"] == rules.container:
        yield from env_refusals(env, f"{path}.env", rules)


def _named(value: object) -> list[JsonObject] | None:
    """Return the list when each of its items is an object with a name."""
    items = as_list(value)
    if items is None or not all(isinstance(at(item, "name"), str) for item in items):
        return None
    return items
