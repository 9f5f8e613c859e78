"""Pure: how many members the group is to have, and how many pods the StatefulSet keeps meanwhile."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from parallel_consumer_operator.pods import Pod
from parallel_consumer_runtime.settings import MemberState, MemberStatus


@dataclass(frozen=True, slots=True)
class Sizes:
    """The two counts that differ while scaling in."""

    wanted: int
    """Members the group is to have; pods learn it from the live settings and leave when they are too many."""
    existing: int
    """Pods the StatefulSet keeps."""

    @property
    def scaling_in(self) -> bool:
        """Whether pods that are too many still leave."""
        return self.existing > self.wanted


def plan_sizes(
    *,
    wanted: int,
    current: int | None,
    pods: Sequence[Pod],
    members: Mapping[str, MemberStatus],
    waited_s: float,
    bound_s: float,
) -> Sizes:
    """Return the sizes to apply now.

    Growing is immediate. Shrinking waits until every pod that is too many has left the group, does not run, or had its
    time.

    Args:
        wanted: the spec's replicas.
        current: the StatefulSet's replicas, None when there is none yet.
        pods: the pods as they are.
        members: what they report, by pod name.
        waited_s: since the scale-in was first seen; 0 when it is seen now.
        bound_s: how long to wait at most.
    """
    if current is None or wanted >= current:
        return Sizes(wanted, wanted)
    leaving = [pod for pod in pods if pod.ordinal >= wanted]
    staying = [pod for pod in leaving if pod.running and not _left(members.get(pod.name))]
    return Sizes(wanted, wanted if not staying or waited_s >= bound_s else current)


def _left(member: MemberStatus | None) -> bool:
    return member is not None and member.state == MemberState.CLOSED
