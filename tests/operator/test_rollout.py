"""Which pod may restart now, and how many pods stay: pure decisions, case by case."""

import pytest

from parallel_consumer_operator.pods import Pod
from parallel_consumer_operator.rollout import next_restart
from parallel_consumer_operator.scaling import Sizes, plan_sizes
from parallel_consumer_runtime.settings import MemberState, MemberStatus
from tests.support.fake_kube import FakeReader


def pod(ordinal: int, kind: str = "new", *, running: bool = True, ready: bool = True, terminating: bool = False) -> Pod:
    """Return a pod of the new or the old template."""
    return Pod(
        name=f"orders-{ordinal}",
        uid=f"uid-{ordinal}",
        ordinal=ordinal,
        ip=None,
        running=running,
        ready=ready,
        terminating=terminating,
        template_hash=kind,
        resources_hash="r",
        problem=None,
    )


def decide(*pods: Pod, existing: int = 3) -> str | None:
    """Return the name of the pod to restart."""
    chosen = next_restart(pods, existing=existing, template_hash="new", resources_hash="r")
    return chosen.name if chosen else None


def test_nothing_restarts_when_all_are_new() -> None:
    """A settled object stays settled."""
    assert decide(pod(0), pod(1), pod(2)) is None


def test_the_highest_outdated_ordinal_goes_first() -> None:
    """As a StatefulSet would do it."""
    assert decide(pod(0, "old"), pod(1, "old"), pod(2, "old")) == "orders-2"
    assert decide(pod(0, "old"), pod(1, "old"), pod(2)) == "orders-1"


@pytest.mark.parametrize("hindrance", [pod(2, ready=False), pod(2, ready=False, terminating=True)])
def test_a_roll_waits_for_the_last_one(hindrance: Pod) -> None:
    """A new pod that does not become ready stops the roll: a bad template costs one pod."""
    assert decide(pod(0, "old"), pod(1, "old"), hindrance) is None


def test_a_roll_waits_for_a_missing_pod() -> None:
    """A pod that was deleted and is not there again yet counts as restarting."""
    assert decide(pod(0, "old"), pod(1, "old")) is None


def test_a_broken_outdated_pod_goes_first_and_waits_for_no_other() -> None:
    """The new template may be what repairs it."""
    assert decide(pod(0, "old", ready=False), pod(1, "old"), pod(2, "old")) == "orders-0"
    assert decide(pod(0, "old", ready=False), pod(1, "old", ready=False), pod(2)) == "orders-1"


def test_a_pod_whose_resources_differ_is_outdated() -> None:
    """Until pods are resized in place, a change of resources is a roll."""
    assert pod(0, "new").outdated("new", "other")


def member(state: MemberState) -> MemberStatus:
    """Return a report."""
    reader = FakeReader()
    reader.tell("orders-2", "r", state=state)
    return reader.members["orders-2"]


def sizes(
    wanted: int, current: int | None, *, told: MemberStatus | None = None, waited_s: float = 0, pods: int = 3
) -> Sizes:
    """Return the sizes for so many pods, of which orders-2 may report."""
    return plan_sizes(
        wanted=wanted,
        current=current,
        pods=[pod(ordinal) for ordinal in range(pods)],
        members={"orders-2": told} if told else {},
        waited_s=waited_s,
        bound_s=75,
    )


def test_growing_is_immediate() -> None:
    """New members need nobody's leave."""
    assert sizes(5, 3) == Sizes(5, 5)
    assert sizes(3, None, pods=0) == Sizes(3, 3)


def test_shrinking_waits_for_every_pod_that_leaves() -> None:
    """A pod that drains or says nothing holds the StatefulSet; one that left or is gone does not."""
    assert sizes(2, 3) == Sizes(2, 3)
    assert sizes(2, 3, told=member(MemberState.DRAINING)) == Sizes(2, 3)
    assert sizes(2, 3, told=member(MemberState.CLOSED)) == Sizes(2, 2)
    assert sizes(2, 3, pods=2) == Sizes(2, 2)
    assert sizes(1, 3, told=member(MemberState.CLOSED)) == Sizes(1, 3), "orders-1 is still there"


def test_shrinking_does_not_wait_for_a_pod_that_never_ran() -> None:
    """No image, no node, a handler that does not import: nothing is in flight there."""
    stuck = [pod(0), pod(1, running=False, ready=False)]
    assert plan_sizes(wanted=1, current=2, pods=stuck, members={}, waited_s=0, bound_s=75) == Sizes(1, 1)


def test_shrinking_ends_at_the_bound() -> None:
    """A pod that never answers costs the drain and the session, no more."""
    assert sizes(2, 3, waited_s=74.9) == Sizes(2, 3)
    assert sizes(2, 3, waited_s=75) == Sizes(2, 2)
