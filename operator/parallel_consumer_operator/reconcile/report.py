"""Pure: what was observed becomes the status, its conditions and its one word."""

from collections.abc import Sequence
from dataclasses import dataclass

from parallel_consumer_operator.api import Condition, ConditionType, Identity, ParallelConsumerStatus, Reason, State
from parallel_consumer_operator.conditions import condition
from parallel_consumer_operator.desired import Children, selector_of
from parallel_consumer_operator.pods import Pod
from parallel_consumer_operator.reconcile.observe import Observation
from parallel_consumer_operator.scaling import Sizes
from parallel_consumer_operator.windows.model import Standing
from parallel_consumer_runtime.settings import MemberStatus

_NAMES_MAX = 5
_ADVANCING = {"Settled", "Running", "Suspended", "Busy"}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one reconcile wished and did."""

    sizes: Sizes
    children: Children
    applied: list[str]
    restarted: str | None
    """The pod that was deleted to take the new template."""
    paused: bool
    standings: dict[str, Standing]
    """How the windows of each entry stand."""


def refused_status(
    owner: Identity, before: ParallelConsumerStatus, seen: Observation, reason: Reason, message: str
) -> ParallelConsumerStatus:
    """Return the status of an object that cannot be acted upon; running pods, if any, were left alone, and go on."""
    answer = condition(ConditionType.READY, status=False, reason=reason, message=message, generation=owner.generation)
    stalled = condition(
        ConditionType.RECONCILING, status=False, reason=reason, message=message, generation=owner.generation
    )
    kafka = condition_kafka(owner, seen.members)
    others = [item for item in before.conditions if item.type not in {answer.type, stalled.type, kafka.type}]
    return _with_figures(owner, State.REFUSED, seen, seen.stateful_replicas or 0, [answer, stalled, *others, kafka])


def status_of(owner: Identity, seen: Observation, outcome: Outcome) -> ParallelConsumerStatus:
    """Return the whole status; conditions carry no times yet."""
    ready = condition_ready(owner, seen.pods, outcome.sizes.wanted)
    reconciling = condition_reconciling(owner, seen.pods, outcome)
    applied = condition_applied(owner, seen, outcome)
    kafka = condition_kafka(owner, seen.members)
    state = _state(seen.pods, outcome, kafka)
    conditions = [ready, reconciling, applied, kafka, *condition_windows(owner, outcome.standings)]
    return _with_figures(owner, state, seen, outcome.sizes.existing, conditions)


def _with_figures(
    owner: Identity, state: State, seen: Observation, existing: int, conditions: list[Condition]
) -> ParallelConsumerStatus:
    members = list(seen.members.values())
    revisions = {member.revision for member in members}
    return ParallelConsumerStatus(
        state=state,
        observed_generation=owner.generation,
        replicas=len(seen.pods),
        ready_replicas=sum(pod.ready for pod in seen.pods),
        selector=selector_of(owner.name),
        concurrency=sum(member.concurrency for member in members) if members else None,
        in_flight=sum(member.in_flight for member in members) if members else None,
        lag=lag_of(members, existing),
        applied_revision=revisions.pop() if len(revisions) == 1 and len(members) == len(seen.pods) else None,
        conditions=conditions,
    )


def lag_of(members: Sequence[MemberStatus], existing: int) -> int | None:
    """Return the records not yet complete, None unless every pod reports and knows: unknown is never 0."""
    if existing == 0 or len(members) < existing:
        return None
    known = [member.lag for member in members if member.lag is not None]
    return sum(known) if len(known) == len(members) else None


def condition_ready(owner: Identity, pods: Sequence[Pod], wanted: int) -> Condition:
    """Answer: do all wanted pods consume?"""
    kind, generation = ConditionType.READY, owner.generation
    ready = sum(pod.ready for pod in pods)
    problems = [pod.problem for pod in pods if pod.problem]
    if wanted == 0:
        return condition(
            kind, status=True, reason=Reason.NO_PODS_WANTED, message="spec.replicas is 0", generation=generation
        )
    if problems:
        message = f"{ready} of {wanted} ready; " + _listed(problems, "; ")
        return condition(kind, status=False, reason=Reason.POD_FAILING, message=message, generation=generation)
    all_ready = ready >= wanted
    return condition(
        kind,
        status=all_ready,
        reason=Reason.ALL_PODS_READY if all_ready else Reason.PODS_NOT_READY,
        message=f"{ready} of {wanted} ready",
        generation=generation,
    )


def condition_reconciling(owner: Identity, pods: Sequence[Pod], outcome: Outcome) -> Condition:
    """Answer: is the operator still changing something?"""
    kind, generation = ConditionType.RECONCILING, owner.generation
    children = outcome.children
    outdated = [pod.name for pod in pods if pod.outdated(children.template_hash, children.resources_hash)]
    if outcome.applied:
        message = f"applied {', '.join(outcome.applied)}"
        return condition(kind, status=True, reason=Reason.APPLYING, message=message, generation=generation)
    if outcome.sizes.scaling_in or len(pods) != outcome.sizes.existing:
        message = f"{len(pods)} pods, {outcome.sizes.wanted} wanted"
        return condition(kind, status=True, reason=Reason.SCALING, message=message, generation=generation)
    if outdated:
        message = f"run an outdated template: {_listed(outdated, ', ')}"
        return condition(kind, status=True, reason=Reason.ROLLING, message=message, generation=generation)
    return condition(kind, status=False, reason=Reason.AS_DESIRED, message="nothing to do", generation=generation)


def condition_applied(owner: Identity, seen: Observation, outcome: Outcome) -> Condition:
    """Answer: do all pods work with the wanted live settings?"""
    kind, generation = ConditionType.CONCURRENCY_APPLIED, owner.generation
    revision = outcome.children.live.revision
    behind = [pod.name for pod in seen.pods if pod.name in seen.members and seen.members[pod.name].revision != revision]
    silent = [pod.name for pod in seen.pods if pod.name not in seen.members]
    if behind:
        message = f"revision {revision} is not yet applied by {_listed(behind, ', ')}"
        return condition(kind, status=False, reason=Reason.WAITING_FOR_PODS, message=message, generation=generation)
    if silent or not seen.pods:
        nobody = "there are no pods" if not seen.pods else f"no report from {_listed(silent, ', ')}"
        return condition(kind, status=None, reason=Reason.PODS_DO_NOT_REPORT, message=nobody, generation=generation)
    message = f"every pod applied revision {revision}"
    return condition(kind, status=True, reason=Reason.ACKNOWLEDGED, message=message, generation=generation)


def condition_kafka(owner: Identity, members: dict[str, MemberStatus]) -> Condition:
    """Answer: do the pods reach the brokers?"""
    kind, generation = ConditionType.KAFKA_REACHABLE, owner.generation
    if not members:
        message = "no pod reports"
        return condition(kind, status=None, reason=Reason.PODS_DO_NOT_REPORT, message=message, generation=generation)
    cut_off = [name for name, member in members.items() if not member.kafka_reachable]
    if cut_off:
        message = f"no broker answers {_listed(cut_off, ', ')}; see spec.kafka.bootstrapServers"
        return condition(kind, status=False, reason=Reason.DISCONNECTED, message=message, generation=generation)
    message = "every pod that reports reaches a broker"
    return condition(kind, status=True, reason=Reason.CONNECTED, message=message, generation=generation)


def condition_windows(owner: Identity, standings: dict[str, Standing]) -> list[Condition]:
    """Answer, when there are any: do windows follow one another?"""
    if not standings:
        return []
    kind, generation = ConditionType.WINDOWS_ADVANCING, owner.generation
    held = {name: one for name, one in standings.items() if one.reason not in _ADVANCING}
    told = held or standings
    message = _listed([f"{name}: {one.words}" for name, one in told.items()], "; ")
    reason = Reason(next(iter(held.values())).reason) if held else Reason.AS_DESIRED
    return [condition(kind, status=not held, reason=reason, message=message, generation=generation)]


def _state(pods: Sequence[Pod], outcome: Outcome, kafka: Condition) -> State:
    children, sizes = outcome.children, outcome.sizes
    if any(pod.problem for pod in pods) or kafka.reason == Reason.DISCONNECTED:
        return State.DEGRADED
    if sizes.wanted == 0 and not pods:
        return State.STOPPED
    outdated = any(pod.outdated(children.template_hash, children.resources_hash) for pod in pods)
    if sizes.scaling_in or outdated or outcome.restarted or len(pods) > sizes.wanted:
        return State.UPDATING
    if sum(pod.ready for pod in pods) < sizes.wanted:
        return State.PENDING
    return State.PAUSED if outcome.paused else State.RUNNING


def _listed(names: Sequence[str], separator: str) -> str:
    more = f"{separator}and {len(names) - _NAMES_MAX} more" if len(names) > _NAMES_MAX else ""
    return separator.join(names[:_NAMES_MAX]) + more
