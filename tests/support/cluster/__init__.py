"""A real Kubernetes for tests: an explicit kubeconfig, kind, or a node that is built here and lives in a namespace.

`python -m tests.support.cluster run -- COMMAND…` prepares everything (binaries, images, Kafka's jars), starts the cluster,
runs the command where the cluster, its pods and Kafka are all reachable, and leaves nothing behind, even when it is
killed. Interactively: `python -m tests.support.cluster run -- bash`, where `kubectl` just works.

The order of choice: `PCONSUMER_TEST_KUBECONFIG` names a kubeconfig; else kind, when Docker and kind are there; else a
node of our own (`node.py`), which needs root on Debian and the packages that `make setup-cluster` installs.
"""

from tests.support.cluster.prerequisites import why_unavailable

__all__ = ["why_unavailable"]
