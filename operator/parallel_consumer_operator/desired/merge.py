"""Merges a user's part of a pod over the rendered one: maps by key, Kubernetes' named lists by their merge key."""

import copy
from typing import Any

from parallel_consumer_operator.untyped import as_list, as_map

_MERGE_KEYS = {
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "env": "name",
    "imagePullSecrets": "name",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "ports": "containerPort",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
}
"""As in the pod's own API: an item with the same key is merged, any other is added at the end."""


def merge_strategically(base: Any, over: Any, name: str = "") -> Any:
    """Return `base` with `over` laid on it; neither is changed.

    Args:
        base: what the operator rendered.
        over: what the user wrote; where both are plain values or unnamed lists, it replaces.
        name: the field both stand in, which decides how lists merge.
    """
    base_map, over_map = as_map(base), as_map(over)
    if base_map is not None and over_map is not None:
        result = copy.deepcopy(base_map)
        for key, value in over_map.items():
            result[key] = merge_strategically(result[key], value, key) if key in result else copy.deepcopy(value)
        return result
    base_list, over_list = as_list(base), as_list(over)
    if base_list is not None and over_list is not None and (merge_key := _MERGE_KEYS.get(name)):
        return _merge_named(base_list, over_list, merge_key)
    return copy.deepcopy(over)


def _merge_named(base: list[Any], over: list[Any], merge_key: str) -> list[Any]:
    result = copy.deepcopy(base)
    places = {item[merge_key]: place for place, item in enumerate(result)}
    for item in over:
        place = places.get((as_map(item) or {}).get(merge_key))
        if place is None:
            result.append(copy.deepcopy(item))
        else:
            result[place] = merge_strategically(result[place], item)
    return result
