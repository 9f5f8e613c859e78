"""What to do next about a SparkJob, and how it stands: a function of what is seen now.

The Jobs are the truth about attempts; the status fills in where a Job is gone. Invariants: an attempt begins only when every
driver of an earlier one has ended; what became of a failed attempt is in the status before the next begins; what is
finished and recorded never runs again.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from parallel_consumer_operator.api import SparkJob, SparkJobStatus, SparkReason, SparkState
from parallel_consumer_operator.sparkjob.causes import Cause, failure_cause, waiting_cause
from parallel_consumer_operator.sparkjob.logs import log_tail
from parallel_consumer_operator.sparkjob.readings import Attempt, Seen, SparkPod
from parallel_consumer_runtime.settings import format_duration
from parallel_consumer_runtime.settings.spark import RestartType, SparkJobSpec

SOON_S = 1.0
"""How soon to look again after something was done, and while the cluster is about to finish something."""
MOVING_INTERVAL_S = 5.0
"""How soon while an attempt starts: what moves is an event, which may be lost."""
_SILENT_AFTER = timedelta(seconds=5)
"""How long a Job may have no pod, or a driver no executor, before somebody is asked why."""


@dataclass(frozen=True, slots=True)
class Begin:
    """Begin an attempt."""

    attempt: int
    failures: int


@dataclass(frozen=True, slots=True)
class Stop:
    """Stop an attempt: suspend its Job, with the cause beside it."""

    attempt: Attempt
    cause: Cause
    log: str


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete the SparkJob: its time to live is over."""


@dataclass(frozen=True, slots=True)
class Decision:
    """How it stands, and what follows."""

    state: SparkState
    cause: Cause
    """Why it is not running, or what ended it; while it runs, the sentence that says so."""
    attempt: int = 0
    failures: int = 0
    job_name: str | None = None
    running_since: datetime | None = None
    failure_time: datetime | None = None
    completion_time: datetime | None = None
    log: str = ""
    """What is kept of a failed attempt's log."""
    act: Begin | Stop | Remove | None = None
    wait_s: float | None = None
    """When to come again even without an event."""
    log_of: SparkPod | None = None
    """Whose log would tell more; decide again with it."""
    log_is_last: bool = False
    """Whether that log is gone, or looked at no more, afterwards."""
    refusals_of: Attempt | None = None
    """Whose refusals would tell more; decide again with them."""


def decide(job: SparkJob, seen: Seen, now: datetime) -> Decision:
    """Return what follows from what is seen at a time of the wall clock."""
    before = job.status
    if before.state.final and before.completion_time is not None:
        return _finished(job, now)
    newest = seen.attempts[-1] if seen.attempts else None
    if newest is None or newest.number < before.attempts:
        return _without_job(job, seen, now)
    return _with_job(job, newest, seen, now)


def _with_job(job: SparkJob, newest: Attempt, seen: Seen, now: datetime) -> Decision:
    waits = Cause(SparkReason.WAITING, "")
    stands = Decision(SparkState.STARTING, waits, newest.number, newest.failures, newest.name)
    if newest.complete:
        cause = Cause(SparkReason.APPLICATION_SUCCEEDED, "the application ended with status 0")
        since = _running_since(job.status, seen, newest, job.spec)
        done = replace(stands, state=SparkState.SUCCEEDED, cause=cause, running_since=since)
        return replace(done, completion_time=newest.finished_at or now, wait_s=SOON_S)
    if newest.ended is SparkReason.SUSPENDED:
        return _suspended(job, replace(stands, log=newest.ended_log), seen, now)
    if newest.ended is not None:
        cause = Cause(newest.ended, newest.ended_message)
        return _failed(job, replace(stands, cause=cause, log=newest.ended_log), newest.ended_at or now, seen, now)
    if newest.failed:
        return _failed_by_itself(job, stands, newest, seen, now)
    if newest.suspended:
        cause = Cause(SparkReason.SUSPENDED, f"Job {newest.name} was suspended by someone else: resume it there")
        return replace(stands, state=SparkState.SUSPENDED, cause=cause)
    return _active(job, stands, newest, seen, now)


def _finished(job: SparkJob, now: datetime) -> Decision:
    before = job.status
    decision = Decision(
        before.state, Cause(SparkReason.FINISHED, before.message or ""), before.attempts, before.failures
    )
    life_s = job.spec.time_to_live_seconds_after_finished
    if life_s is None or job.controlled or before.completion_time is None:
        return decision
    left_s = (datetime.fromisoformat(before.completion_time) - now).total_seconds() + life_s
    return replace(decision, act=Remove()) if left_s <= 0 else replace(decision, wait_s=left_s)


def _without_job(job: SparkJob, seen: Seen, now: datetime) -> Decision:
    """Nothing was begun yet, or someone deleted the newest attempt's Job."""
    before = job.status
    stands = Decision(SparkState.PENDING, Cause(SparkReason.WAITING, "the first attempt begins"))
    if before.attempts == 0:
        if job.spec.suspend:
            cause = Cause(SparkReason.SUSPENDED, "nothing runs until suspend is false")
            return replace(stands, state=SparkState.SUSPENDED, cause=cause)
        return _begin(stands, 1, 0, seen, now)
    stands = replace(stands, attempt=before.attempts, failures=before.failures, job_name=before.job_name)
    if before.state is SparkState.SUSPENDED:
        return _suspended(job, stands, seen, now)
    if before.state is SparkState.RETRYING:
        return _retry(job, stands, seen, now)
    words = f"Job {before.job_name} was deleted by someone else while it ran"
    return _failed(job, replace(stands, cause=Cause(SparkReason.JOB_DELETED, words)), now, seen, now)


def _suspended(job: SparkJob, stands: Decision, seen: Seen, now: datetime) -> Decision:
    if not job.spec.suspend:
        return _begin(stands, stands.attempt + 1, stands.failures, seen, now)
    ending = [f"driver pod {pod.name} ends{pod.overdue(now)}" for pod in seen.drivers if not pod.ended]
    words = ending[0] if ending else "nothing runs until suspend is false"
    return replace(stands, state=SparkState.SUSPENDED, cause=Cause(SparkReason.SUSPENDED, words))


def _failed_by_itself(job: SparkJob, stands: Decision, newest: Attempt, seen: Seen, now: datetime) -> Decision:
    at = newest.finished_at or now
    if _recorded(job.status, stands):
        return _failed(job, stands, at, seen, now)
    driver = seen.driver_of(newest.number)
    if seen.log is None and driver is not None and driver.started_at is not None:
        return replace(stands, log_of=driver, log_is_last=True)
    cause = failure_cause(seen, newest, job.status)
    return _failed(job, replace(stands, cause=cause, log=log_tail(seen.log or "")), at, seen, now)


def _failed(job: SparkJob, stands: Decision, at: datetime, seen: Seen, now: datetime) -> Decision:
    """An attempt failed: another follows, or that was the end."""
    policy, before = job.spec.restart_policy, job.status
    if _recorded(before, stands):
        return _retry(job, replace(stands, failures=before.failures), seen, now)
    failures = stands.failures + 1
    stands = replace(stands, failures=failures, failure_time=at)
    if policy.type is RestartType.NEVER or failures > policy.on_failure_retries:
        return replace(stands, state=SparkState.FAILED, completion_time=at, wait_s=SOON_S)
    # The next one begins when this is in the status: else nobody would learn why the last one failed.
    return replace(stands, state=SparkState.RETRYING, wait_s=SOON_S)


def _retry(job: SparkJob, stands: Decision, seen: Seen, now: datetime) -> Decision:
    """A failure that is in the status is followed by the next attempt when its time has come."""
    before = job.status
    at = datetime.fromisoformat(before.failure_time) if before.failure_time else now
    cause = Cause(SparkReason.RETRYING, before.message or "")
    stands = replace(
        stands,
        state=SparkState.RETRYING,
        cause=cause,
        failure_time=at,
        log=before.driver.log_tail or "",
    )
    if job.spec.suspend:
        return stands
    wait_s = (at - now).total_seconds() + job.spec.restart_policy.on_failure_retry_interval
    return (
        replace(stands, wait_s=wait_s) if wait_s > 0 else _begin(stands, stands.attempt + 1, stands.failures, seen, now)
    )


def _begin(stands: Decision, attempt: int, failures: int, seen: Seen, now: datetime) -> Decision:
    if left := [pod for pod in seen.drivers if not pod.ended]:
        words = f"driver pod {left[0].name} of an earlier attempt has not ended{left[0].overdue(now)}"
        return replace(stands, cause=Cause(SparkReason.WAITING, words), wait_s=MOVING_INTERVAL_S)
    if not stands.cause.words:
        stands = replace(stands, cause=Cause(SparkReason.WAITING, f"attempt {attempt} begins"))
    return replace(stands, act=Begin(attempt, failures), wait_s=SOON_S)


def _active(job: SparkJob, stands: Decision, newest: Attempt, seen: Seen, now: datetime) -> Decision:
    driver = seen.driver_of(newest.number)
    since = _running_since(job.status, seen, newest, job.spec)
    stands = replace(stands, running_since=since, wait_s=MOVING_INTERVAL_S)
    if driver is not None and driver.ended:
        cause = Cause(SparkReason.WAITING, f"driver pod {driver.name} has ended; its Job is about to say so")
        return replace(stands, state=SparkState.RUNNING if since else SparkState.STARTING, cause=cause, wait_s=SOON_S)
    if job.spec.suspend:
        return _stop(stands, newest, Cause(SparkReason.SUSPENDED, "suspend is true"), seen, driver)
    timeouts = job.spec.timeouts
    if since is None:
        return _starting(job, stands, newest, seen, now)
    words = f"driver pod {driver.name} runs" if driver else f"the driver pod of Job {newest.name} is gone"
    stands = replace(stands, state=SparkState.RUNNING, cause=Cause(SparkReason.RUNNING, words), wait_s=None)
    if driver is not None and (driver.disruption or driver.terminating):
        words = f"driver pod {driver.name} is ended by the cluster: {driver.disruption or 'it was deleted'}"
        words += driver.overdue(now)
        stands = replace(stands, cause=Cause(SparkReason.RUNNING, words), wait_s=MOVING_INTERVAL_S)
    elif driver is not None and job.spec.executors_wanted and not any(map(_runs, seen.executors_of(newest.number))):
        trouble = waiting_cause(seen, newest, job.spec.executors_wanted)
        if trouble.reason is not SparkReason.WAITING:
            stands = replace(stands, cause=Cause(SparkReason.RUNNING, f"{words}, no executor does: {trouble.words}"))
    if timeouts.run is None:
        return stands
    left_s = (since - now).total_seconds() + timeouts.run
    if left_s > 0:
        return replace(stands, wait_s=left_s if stands.wait_s is None else min(left_s, stands.wait_s))
    cause = Cause(SparkReason.RUN_TIMEOUT, f"ran longer than timeouts.run, {format_duration(timeouts.run)}")
    return _stop(stands, newest, cause, seen, driver)


def _starting(job: SparkJob, stands: Decision, newest: Attempt, seen: Seen, now: datetime) -> Decision:
    driver, wanted = seen.driver_of(newest.number), job.spec.executors_wanted
    if driver is None and seen.refusals is None and now >= newest.began_at + _SILENT_AFTER:
        return replace(stands, refusals_of=newest)
    if driver is not None and driver.running and driver.started_at is not None and seen.log is None:
        silent = not seen.executors_of(newest.number) and now >= driver.started_at + _SILENT_AFTER
        if silent:
            return replace(stands, log_of=driver)
    cause = waiting_cause(seen, newest, wanted)
    stands = replace(stands, cause=cause)
    timeout_s = job.spec.timeouts.start
    left_s = (newest.began_at - now).total_seconds() + timeout_s
    if left_s > 0:
        return replace(stands, wait_s=min(left_s, MOVING_INTERVAL_S))
    reason = SparkReason.START_TIMEOUT if cause.reason is SparkReason.WAITING else cause.reason
    words = f"not running within timeouts.start, {format_duration(timeout_s)}: {cause.words}"
    return _stop(stands, newest, Cause(reason, words), seen, driver)


def _stop(stands: Decision, newest: Attempt, cause: Cause, seen: Seen, driver: SparkPod | None) -> Decision:
    if seen.log is None and driver is not None and driver.started_at is not None:
        return replace(stands, log_of=driver, log_is_last=True)
    state = SparkState.RUNNING if stands.running_since else SparkState.STARTING
    act = Stop(newest, cause, log_tail(seen.log or ""))
    return replace(stands, state=state, cause=replace(cause, reason=SparkReason.WAITING), act=act, wait_s=SOON_S)


def _runs(pod: SparkPod) -> bool:
    return pod.running


def _recorded(before: SparkJobStatus, stands: Decision) -> bool:
    return before.state is SparkState.RETRYING and before.attempts == stands.attempt


def _running_since(before: SparkJobStatus, seen: Seen, newest: Attempt, spec: SparkJobSpec) -> datetime | None:
    """Return since when the attempt runs: what the status says, else what its pods tell."""
    if before.attempts == newest.number and before.running_since is not None:
        return datetime.fromisoformat(before.running_since)
    driver = seen.driver_of(newest.number)
    if driver is None or driver.started_at is None:
        return None
    if spec.executors_wanted == 0:
        return driver.started_at
    first = min((pod.started_at for pod in seen.executors_of(newest.number) if pod.started_at), default=None)
    return None if first is None else max(driver.started_at, first)
