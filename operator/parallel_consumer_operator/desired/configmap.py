"""The ConfigMap that carries the live settings to the pods."""

import json

from parallel_consumer_operator.api import Identity
from parallel_consumer_operator.desired.naming import Manifest, child, config_map_name
from parallel_consumer_runtime.settings import LIVE_FILE, LiveSettings


def config_map(owner: Identity, live: LiveSettings) -> Manifest:
    """Return `<name>-runtime`; its one key is the file that the pods watch."""
    content = json.dumps(live.model_dump(mode="json", by_alias=True, exclude_none=True), sort_keys=True, indent=1)
    return child("v1", "ConfigMap", config_map_name(owner.name), owner, {"data": {LIVE_FILE: content}})
