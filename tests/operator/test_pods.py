"""A pod's trouble is told in words; a pod on its way has none."""

from datetime import UTC, datetime
from typing import Any

import pytest

from parallel_consumer_operator.pods import Pod

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def read(ready: str = "False", **status: Any) -> Pod:
    """Return the reading of a pod with a status."""
    conditions = [{"type": "Ready", "status": ready}, *status.pop("conditions", [])]
    return Pod.of({"metadata": {"name": "orders-7", "uid": "u"}, "status": {**status, "conditions": conditions}}, NOW)


def container(**fields: Any) -> list[dict[str, Any]]:
    """Return the list of one container's status."""
    return [{"name": "consumer", **fields}]


def test_the_ordinal_is_the_names_end() -> None:
    """The instance id and the ordinal come from the name."""
    assert read().ordinal == 7


@pytest.mark.parametrize("reason", ["ContainerCreating", "PodInitializing"])
def test_a_pod_on_its_way_has_no_problem(reason: str) -> None:
    """Starting is not failing."""
    assert read(containerStatuses=container(state={"waiting": {"reason": reason}})).problem is None


def test_an_image_that_cannot_be_pulled_is_named() -> None:
    """The kubelet's message names the image."""
    waiting = {"reason": "ImagePullBackOff", "message": "Back-off pulling image orders:9"}
    problem = read(containerStatuses=container(state={"waiting": waiting})).problem
    assert problem == "pod orders-7, container consumer: ImagePullBackOff: Back-off pulling image orders:9"


def test_a_crash_loop_says_what_the_process_said() -> None:
    """The termination message is what a user needs."""
    ended = {"exitCode": 78, "reason": "Error", "message": "handler orders:x does not import"}
    problem = read(
        containerStatuses=container(state={"waiting": {"reason": "CrashLoopBackOff"}}, lastState={"terminated": ended})
    ).problem
    assert problem == (
        "pod orders-7, container consumer: CrashLoopBackOff: ended with status 78: handler orders:x does not import"
    )


def test_a_pod_that_ran_out_of_memory_says_so() -> None:
    """OOMKilled is a reason of its own."""
    problem = read(
        containerStatuses=container(
            state={"running": {}}, lastState={"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
        )
    ).problem
    assert problem == "pod orders-7, container consumer: ended with status 137 (OOMKilled)"


def test_a_pod_that_is_ready_again_has_no_problem() -> None:
    """An old crash is history."""
    ended = {"terminated": {"exitCode": 1}}
    assert read("True", containerStatuses=container(state={"running": {}}, lastState=ended)).problem is None


def test_a_pod_that_no_node_takes_is_named() -> None:
    """The scheduler's words."""
    refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes: cpu"}
    assert read(conditions=[refused]).problem == "pod orders-7: no node takes it: 0/3 nodes: cpu"


def test_a_long_message_is_cut() -> None:
    """A status is not a log."""
    waiting = {"reason": "CreateContainerConfigError", "message": "x" * 10_000}
    problem = read(containerStatuses=container(state={"waiting": waiting})).problem
    assert problem is not None
    assert len(problem) < 500


def test_a_pod_runs_while_its_consumer_does() -> None:
    """A sidecar is no consumer, and one that waits or ended holds no record."""
    states: list[tuple[str, dict[str, Any], bool]] = [
        ("consumer", {"running": {}}, True),
        ("consumer", {"waiting": {"reason": "CrashLoopBackOff"}}, False),
        ("consumer", {"terminated": {"exitCode": 0}}, False),
        ("sidecar", {"running": {}}, False),
    ]
    for name, state, running in states:
        assert read(containerStatuses=[{"name": name, "state": state}]).running == running
    assert not read().running


@pytest.mark.parametrize(("since", "told"), [("03:03:06Z", False), ("03:03:05Z", True)])
def test_a_pod_that_does_not_end_names_its_node(since: str, told: bool) -> None:  # noqa: FBT001 - pytest's way
    """A minute after its grace: on a lost node it stays for ever, and holds its ordinal. Before that it is on its way."""
    manifest: dict[str, Any] = {
        "metadata": {"name": "orders-7", "uid": "u", "deletionTimestamp": f"2026-01-02T{since}"},
        "spec": {"nodeName": "n3"},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }
    problem = Pod.of(manifest, NOW).problem
    assert (problem is not None) == told
    if problem is not None:
        assert problem.startswith("pod orders-7 was to end by 2026-01-02T03:03:05Z and did not")
        assert "node n3 may be lost" in problem
