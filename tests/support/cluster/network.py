"""Lets pods reach what runs beside the tests."""

from tests.support.cluster.kubectl import apply


def serve_kafka(namespace: str, address: str) -> None:
    """Make the broker known in a namespace as `kafka:9092`."""
    ports = [{"name": "kafka", "port": 9092}]
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "kafka"}, "spec": {"ports": ports}}
    endpoints = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "kafka", "labels": {"kubernetes.io/service-name": "kafka"}},
        "addressType": "IPv4",
        "ports": ports,
        "endpoints": [{"addresses": [address]}],
    }
    apply({"apiVersion": "v1", "kind": "List", "items": [service, endpoints]}, namespace)
