"""The cluster tier: runs where `python -m tests.support.cluster run` put it, with KUBECONFIG set."""

import os
import secrets
from collections.abc import Generator, Iterator

import pytest

from tests.support.cluster import why_unavailable
from tests.support.cluster.diagnostics import keep
from tests.support.cluster.kubectl import kubectl
from tests.support.cluster.run import NODE_ADDRESS_ENV, PROVIDER_ENV
from tests.support.kafka import KafkaBroker

KAFKA_PORT = 9092
REQUIRE_ENV = "PCONSUMER_REQUIRE_TIERS"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark everything here, and skip it, or fail it when the tier is required, outside the tier's command."""
    here = os.path.dirname(__file__)  # noqa: PTH120 - items carry strings
    for item in items:
        if not str(item.path).startswith(here):
            continue
        item.add_marker(pytest.mark.cluster)
        if PROVIDER_ENV not in os.environ and "cluster" not in os.environ.get(REQUIRE_ENV, ""):
            item.add_marker(pytest.mark.skip(reason=why_unavailable() or "run `make cluster`: it brings the cluster"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep what the cluster knows when a test fails, before its fixtures clean up."""
    report = yield
    if report.when != "teardown" and report.failed and PROVIDER_ENV in os.environ:
        report.sections.append(("the cluster", f"objects and logs are kept in {keep(item.nodeid)}"))
    return report


@pytest.fixture(scope="session")
def node_address() -> str:
    """The address at which pods reach this process's network; only a node of our own shares it."""
    address = os.environ.get(NODE_ADDRESS_ENV)
    if address is None:
        pytest.skip("Kafka runs beside the tests, which only a node of our own can reach")
    return address


@pytest.fixture(scope="session")
def kafka(node_address: str) -> Iterator[KafkaBroker]:
    """A real broker that pods and tests reach at the same address.

    It waits for three seconds before a new group's first assignment, which is Kafka's default: pods that start together
    then share the partitions from the first record on.
    """
    patient = {"group.initial.rebalance.delay.ms": "3000"}
    with KafkaBroker(listen_host=node_address, port=KAFKA_PORT, properties=patient) as broker:
        yield broker


@pytest.fixture(scope="session")
def operator() -> Iterator[None]:
    """The operator, installed by the manifests that users apply."""
    kubectl("apply", "--filename=crds/", "--filename=operator/manifests/")
    crds = ("parallelconsumers.parallelconsumer.io", "sparkjobs.parallelconsumer.io")
    kubectl("wait", "--for=condition=Established", "crd", *crds, "--timeout=30s")
    kubectl("rollout", "status", "deployment", "--namespace=parallel-consumer", "--timeout=60s")
    yield
    kubectl("delete", "--filename=operator/manifests/", "--filename=crds/", "--wait=true", "--timeout=60s")


@pytest.fixture
def namespace() -> Iterator[str]:
    """A namespace that enforces the restricted pod security level, gone after the test."""
    name = f"test-{secrets.token_hex(4)}"
    kubectl("create", "namespace", name)
    kubectl("label", "namespace", name, "pod-security.kubernetes.io/enforce=restricted")
    yield name
    kubectl("delete", "namespace", name, "--wait=true", "--timeout=60s")
