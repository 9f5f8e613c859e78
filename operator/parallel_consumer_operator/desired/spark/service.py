"""The headless Service in front of the driver: Spark's pages and metrics under a name that outlives an attempt."""

from parallel_consumer_operator.api import Identity
from parallel_consumer_operator.desired.naming import Labels, Manifest, child
from parallel_consumer_operator.desired.spark.naming import (
    BLOCK_MANAGER_PORT,
    DRIVER,
    DRIVER_PORT,
    ROLE,
    UI_PORT,
    driver_service_name,
    spark_labels,
)

_PORTS = {"driver": DRIVER_PORT, "block-manager": BLOCK_MANAGER_PORT, "ui": UI_PORT}


def service(owner: Identity) -> Manifest:
    """Return `<name>-driver`."""
    spec = {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": {Labels.SPARK_JOB: owner.name, ROLE: DRIVER},
        "ports": [{"name": name, "port": port, "targetPort": port, "protocol": "TCP"} for name, port in _PORTS.items()],
    }
    name = driver_service_name(owner.name)
    return child("v1", "Service", name, owner, {"spec": spec}, spark_labels(owner.name))
