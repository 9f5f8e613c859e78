"""The ServiceAccount of the pods: an identity for policies, without a token."""

from parallel_consumer_operator.api import Identity
from parallel_consumer_operator.desired.naming import Manifest, child, config_map_name


def service_account(owner: Identity) -> Manifest:
    """Return `<name>-runtime`; pods never speak to the API server, so no token is mounted."""
    return child("v1", "ServiceAccount", config_map_name(owner.name), owner, {"automountServiceAccountToken": False})
