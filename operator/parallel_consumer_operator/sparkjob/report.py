"""Pure: a decision and what was seen become the status, its conditions and its one word."""

from datetime import datetime

from parallel_consumer_operator.api import (
    Condition,
    DriverStatus,
    ExecutorsStatus,
    Identity,
    SparkConditionType,
    SparkJob,
    SparkJobStatus,
    SparkReason,
    SparkState,
)
from parallel_consumer_operator.conditions import condition
from parallel_consumer_operator.desired.spark.naming import UI_PORT, driver_service_name
from parallel_consumer_operator.sparkjob.causes import Cause
from parallel_consumer_operator.sparkjob.decision import Decision
from parallel_consumer_operator.sparkjob.readings import Seen, SparkPod
from parallel_consumer_operator.wording import short

_MESSAGE_LENGTH_MAX = 1024


def refused_spark_status(owner: Identity, before: SparkJobStatus, problem: Cause) -> SparkJobStatus:
    """Return the status of an object that cannot be acted upon; what it says of attempts stays."""
    answer = _accepted(owner, problem)
    others = [item for item in before.conditions if item.type != answer.type]
    return before.model_copy(
        update={
            "state": SparkState.REFUSED,
            "message": answer.message,
            "observed_generation": owner.generation,
            "conditions": [answer, *others],
        }
    )


def spark_status_of(job: SparkJob, seen: Seen, decision: Decision, problem: Cause | None = None) -> SparkJobStatus:
    """Return the whole status; conditions carry no times yet.

    Args:
        job: the object, with the status of before.
        seen: the world.
        decision: how it stands.
        problem: why a child could not be applied, None when all were.
    """
    before = job.status
    same = before.attempts == decision.attempt
    message = short(decision.cause.words, _MESSAGE_LENGTH_MAX)
    return SparkJobStatus(
        state=decision.state,
        message=message or None,
        observed_generation=job.identity.generation,
        attempts=decision.attempt,
        failures=decision.failures,
        job_name=decision.job_name,
        driver=_driver(job, seen, decision, before.driver if same else DriverStatus()),
        executors=_executors(job, seen, decision, before.executors if same else ExecutorsStatus()),
        application_id=_application_id(seen, decision) or (before.application_id if same else None),
        start_time=before.start_time or (_stamp(seen.attempts[0].created_at) if seen.attempts else None),
        running_since=_stamp(decision.running_since) or (before.running_since if same else None),
        failure_time=_stamp(decision.failure_time) or before.failure_time,
        completion_time=_stamp(decision.completion_time),
        conditions=_conditions(job.identity, decision, message, problem),
    )


def _driver(job: SparkJob, seen: Seen, decision: Decision, before: DriverStatus) -> DriverStatus:
    if decision.attempt == 0:
        return DriverStatus()
    owner, pod = job.identity, seen.driver_of(decision.attempt)
    service = driver_service_name(owner.name)
    runs = pod is not None and pod.running and not decision.state.final
    return DriverStatus(
        pod_name=pod.name if pod else before.pod_name,
        service_name=service,
        ui_address=f"http://{service}.{owner.namespace}.svc:{UI_PORT}" if runs else None,
        node_name=(pod.node if pod else None) or before.node_name,
        disruption=(pod.disruption if pod else None) or before.disruption,
        log_tail=decision.log or None,
    )


def _executors(job: SparkJob, seen: Seen, decision: Decision, before: ExecutorsStatus) -> ExecutorsStatus:
    if decision.attempt == 0:
        return ExecutorsStatus(wanted=job.spec.executors_wanted)
    driver, pods = seen.driver_of(decision.attempt), seen.executors_of(decision.attempt)
    over = decision.state.final or driver is None or driver.ended
    failed = sum(_failed_before(pod, driver) for pod in pods)
    return ExecutorsStatus(
        wanted=job.spec.executors_wanted,
        pending=0 if over else sum(not pod.ended and not pod.running for pod in pods),
        running=0 if over else sum(pod.running for pod in pods),
        failed=max(before.failed, failed),  # pods may go, what happened stays
    )


def _failed_before(executor: SparkPod, driver: SparkPod | None) -> bool:
    """Whether an executor failed by itself: those that outlive their driver fail for it."""
    if executor.phase != "Failed" or driver is None:
        return False
    ended = (executor.finished_at, driver.finished_at)
    return driver.finished_at is None or (ended[0] is not None and ended[0] < driver.finished_at)


def _application_id(seen: Seen, decision: Decision) -> str | None:
    return next((pod.application_id for pod in seen.executors_of(decision.attempt) if pod.application_id), None)


def _accepted(owner: Identity, problem: Cause | None) -> Condition:
    return condition(
        SparkConditionType.ACCEPTED,
        status=problem is None,
        reason=SparkReason.AS_DESIRED if problem is None else problem.reason,
        message=short("nothing is refused" if problem is None else problem.words, _MESSAGE_LENGTH_MAX),
        generation=owner.generation,
    )


def _conditions(owner: Identity, decision: Decision, message: str, problem: Cause | None) -> list[Condition]:
    generation, state = owner.generation, decision.state
    accepted = _accepted(owner, problem)
    words = {
        SparkState.RUNNING: SparkReason.RUNNING,
        SparkState.RETRYING: SparkReason.RETRYING,
        SparkState.SUSPENDED: SparkReason.SUSPENDED,
        SparkState.SUCCEEDED: SparkReason.FINISHED,
        SparkState.FAILED: SparkReason.FINISHED,
    }
    running = condition(
        SparkConditionType.RUNNING,
        status=state is SparkState.RUNNING,
        reason=words.get(state, decision.cause.reason),
        message=message,
        generation=generation,
    )
    succeeded = condition(
        SparkConditionType.SUCCEEDED,
        status={SparkState.SUCCEEDED: True, SparkState.FAILED: False}.get(state),
        reason=decision.cause.reason if state.final else SparkReason.IN_PROGRESS,
        message=message if state.final else "the run has not ended",
        generation=generation,
    )
    return [accepted, running, succeeded]


def _stamp(time: datetime | None) -> str | None:
    return None if time is None else time.strftime("%Y-%m-%dT%H:%M:%SZ")
