"""Windows on a real API server, over what real pods finished: cut, recorded, begun by the operator with its own rights."""

import json
from typing import Any

import pytest

from tests.support.cluster.kubectl import apply, get, items, wait_for
from tests.support.cluster.network import serve_kafka
from tests.support.corpus import manifest
from tests.support.kafka import KafkaBroker
from tests.support.traffic import Traffic
from tests.support.waiting import wait_until

RECORDS = 300
FLIGHT = {"id": 1, "departure_delay": 0, "arrival_delay": 0, "air_time": 60, "scheduled": 300}
ENTRY = {
    "name": "archive",
    "image": "flights:1",
    "imagePullPolicy": "Never",
    "mainApplicationFile": "local:///opt/handlers/nothing.py",
    "source": "Results",
    "from": "Earliest",
    "trigger": {"offsets": RECORDS},
    "executor": {"instances": 0},
    "timeouts": {"start": "10s"},
}
"""An image without Spark: its driver cannot start, and the window fails."""


def windows_condition(found: Any) -> dict[str, Any]:
    """Return what a ParallelConsumer says of its windows."""
    conditions: list[dict[str, Any]] = found.get("status", {}).get("conditions", [])
    nothing: dict[str, Any] = {}
    return next((one for one in conditions if one["type"] == "WindowsAdvancing"), nothing)


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("operator")
def test_results_become_a_window_and_a_failed_one_is_waited_for(
    namespace: str, kafka: KafkaBroker, node_address: str
) -> None:
    """Exactly what was produced is in the window; its run begins once the ledger names it; its failure is told."""
    for topic in ("windows-in", "windows-out"):
        kafka.create_topic(topic, 2)
    Traffic(kafka.bootstrap, "windows-in").send(
        (f"N{number % 20}", json.dumps({**FLIGHT, "id": number}).encode()) for number in range(RECORDS)
    )
    serve_kafka(namespace, node_address)
    apply(
        manifest(
            "orders",
            metadata__namespace=namespace,
            spec__image="flights:1",
            spec__imagePullPolicy="Never",
            spec__handler="flights.handlers:on_flight",
            spec__replicas=1,
            spec__kafka__groupId="windows",
            spec__kafka__topics=["windows-in"],
            spec__results={"topic": "windows-out"},
            spec__sparkJobs=[ENTRY],
        ),
        namespace,
    )
    (run,) = wait_until(lambda: items("pcsj", namespace), "the window is cut", 60)
    window = run["spec"]["window"]
    (topic,) = window["topics"]
    ends = kafka.end_offsets("windows-out")
    assert (window["sequence"], window["cause"], topic["name"]) == (1, "Offsets", "windows-out")
    assert {part["partition"]: (part["start"], part["end"]) for part in topic["partitions"]} == {
        partition: (0, end) for partition, end in ends.items()
    }
    assert sum(ends.values()) == RECORDS
    ledger = json.loads(get("configmap", "orders-archive-windows", namespace)["data"]["ledger.json"])
    assert (ledger["sequence"], ledger["open"]["uid"]) == (1, run["metadata"]["uid"])
    wait_until(lambda: items("jobs", namespace), "the run begins", 20)
    told = json.loads(get("configmap", f"{run['metadata']['name']}-spark", namespace)["data"]["window.json"])
    assert told["topics"] == window["topics"]
    failed = wait_for(
        "pcon",
        "orders",
        "tells of the failure",
        lambda found: windows_condition(found).get("reason") == "RunFailed",
        timeout_s=90,
        namespace=namespace,
    )
    assert "archive: window 1 failed 1 times" in windows_condition(failed)["message"]
    assert len(items("pcsj", namespace)) == 1
