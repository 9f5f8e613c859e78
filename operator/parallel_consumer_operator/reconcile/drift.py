"""Pure: does what the server holds still say what we wish? The server adds defaults, which is no difference."""

from typing import Any

from parallel_consumer_operator.desired.naming import Annotations, Manifest
from parallel_consumer_operator.untyped import as_list, as_map, at

_UNSTABLE = ("managedFields", "resourceVersion", "generation", "creationTimestamp", "uid")


def wish_changed(desired: Manifest, observed: Manifest) -> bool:
    """Whether something else was applied last: also sees what is no longer wished."""
    applied, wished = (at(one, "metadata", "annotations", Annotations.APPLIED) for one in (observed, desired))
    return bool(applied != wished)


def covers(observed: Any, desired: Any) -> bool:
    """Whether every field that is wished stands there with its value.

    False also for a value that the server wrote in another way, such as a quantity: then a dry run must tell.
    """
    wished = as_map(desired)
    if wished is not None:
        found = as_map(observed)
        return found is not None and all(key in found and covers(found[key], value) for key, value in wished.items())
    items = as_list(desired)
    if items is not None:
        others = as_list(observed)
        return others is not None and len(others) == len(items) and all(map(covers, others, items))
    return bool(observed == desired)


def without_bookkeeping(manifest: Manifest) -> Manifest:
    """Return the object without what every write changes, and without status: two readings can be compared."""
    metadata = {key: value for key, value in manifest["metadata"].items() if key not in _UNSTABLE}
    return {**{key: value for key, value in manifest.items() if key != "status"}, "metadata": metadata}
