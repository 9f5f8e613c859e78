"""The headless Service: stable pod names in DNS, and a place to scrape metrics from."""

from parallel_consumer_operator.api import Identity
from parallel_consumer_operator.desired.naming import Manifest, child, match_labels_of, service_name
from parallel_consumer_runtime.settings import STATUS_PORT


def service(owner: Identity) -> Manifest:
    """Return `<name>-members`; pods that are not ready are listed too, because those are the ones to look at."""
    spec = {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": match_labels_of(owner.name),
        "ports": [{"name": "http", "port": STATUS_PORT, "targetPort": "http", "protocol": "TCP"}],
    }
    return child("v1", "Service", service_name(owner.name), owner, {"spec": spec})
