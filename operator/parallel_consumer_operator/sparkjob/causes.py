"""Why an attempt does not run, or failed: one reason for scripts, one sentence for people."""

from dataclasses import dataclass

from parallel_consumer_operator.api import SparkJobStatus, SparkReason
from parallel_consumer_operator.sparkjob import logs
from parallel_consumer_operator.sparkjob.readings import Attempt, Seen, SparkPod

_EVICTED = {"Evicted", "NodeShutdown", "Shutdown", "Terminated", "NodeLost", "Preempting"}
_NOT_STARTED = {"StartError", "ContainerCannotRun"}
_OUT_OF_MEMORY = "OOMKilled"


@dataclass(frozen=True, slots=True)
class Cause:
    """A reason and its sentence."""

    reason: SparkReason
    words: str


def waiting_cause(seen: Seen, attempt: Attempt, wanted: int) -> Cause:
    """Return what an attempt that has not started waits for.

    Args:
        seen: the world.
        attempt: the attempt.
        wanted: executors it needs to count as started.
    """
    driver = seen.driver_of(attempt.number)
    if driver is None:
        if seen.refusals:
            return Cause(SparkReason.DRIVER_REFUSED, f"the API server refuses the driver's pod: {seen.refusals[-1]}")
        return Cause(SparkReason.WAITING, f"Job {attempt.name} has no pod yet")
    if not driver.running:
        return _pod_cause(driver, "driver", SparkReason.DRIVER_UNSCHEDULABLE)
    executors = seen.executors_of(attempt.number)
    if not executors and seen.log and (said := logs.executors_refused(seen.log)):
        return Cause(SparkReason.EXECUTORS_REFUSED, f"the API server refuses executors: {said}")
    for pod in executors:
        if pod.exit_code:
            return _failing(pod)
    troubled = [_pod_cause(pod, "executor", SparkReason.EXECUTORS_UNSCHEDULABLE) for pod in executors if not pod.ended]
    first = next((cause for cause in troubled if cause.reason is not SparkReason.WAITING), None)
    return first or Cause(
        SparkReason.WAITING, f"driver pod {driver.name} runs; waits for the first of {wanted} executors"
    )


def failure_cause(seen: Seen, attempt: Attempt, before: SparkJobStatus) -> Cause:
    """Return why an attempt failed whose Job says so.

    Args:
        seen: the world, with the driver's log where there is one.
        attempt: the attempt.
        before: the status as it was, for what a pod that is gone had told.
    """
    driver = seen.driver_of(attempt.number)
    known = before.driver.disruption if before.attempts == attempt.number else None
    if driver is None:
        if known:
            return Cause(SparkReason.DRIVER_EVICTED, f"the driver was evicted: {known}")
        return Cause(SparkReason.DRIVER_LOST, f"the driver's pod was deleted while it ran: {attempt.said}")
    name = f"driver pod {driver.name}"
    if driver.disruption or driver.exit_reason in _EVICTED or known:
        said = driver.disruption or known or f"{driver.exit_reason}: {driver.said}"
        return Cause(SparkReason.DRIVER_EVICTED, f"{name} was evicted: {said}")
    return _container_cause(driver) or _application_cause(seen, attempt, driver, seen.log or "")


def _container_cause(driver: SparkPod) -> Cause | None:
    name = f"driver pod {driver.name}"
    if driver.exit_reason in _NOT_STARTED:
        words = f"{name} could not be started from image {driver.image}: {driver.said}"
        return Cause(SparkReason.CONTAINER_NOT_STARTED, words)
    if driver.exit_reason == _OUT_OF_MEMORY:
        limit = f" (limit {driver.memory})" if driver.memory else ""
        words = f"{name} ran out of memory{limit}: raise driver.memoryOverhead or driver.memory"
        return Cause(SparkReason.DRIVER_OUT_OF_MEMORY, words)
    return Cause(SparkReason.DRIVER_LOST, f"{name} was deleted while it ran") if driver.terminating else None


def _application_cause(seen: Seen, attempt: Attempt, driver: SparkPod, log: str) -> Cause:
    executors = seen.executors_of(attempt.number)
    error = logs.application_error(log)
    ended = f"driver pod {driver.name} ended with status {driver.exit_code}"
    killed = any(pod.exit_reason == _OUT_OF_MEMORY for pod in executors) and "ExecutorLostFailure" in log
    if killed or logs.lost_executor_to_memory(log):
        words = f"executors ran out of memory: raise executor.memoryOverhead or executor.memory; {ended}"
        return Cause(SparkReason.EXECUTORS_OUT_OF_MEMORY, words)
    if not any(pod.started_at for pod in executors) and (said := logs.executors_refused(log)):
        return Cause(SparkReason.EXECUTORS_REFUSED, f"the API server refuses executors: {said}; {ended}")
    if logs.heap_exhausted(log):
        words = f"the driver's heap was exhausted: raise driver.memory; {ended}"
        return Cause(SparkReason.DRIVER_OUT_OF_MEMORY, words)
    if error is not None:
        return Cause(SparkReason.APPLICATION_FAILED, f"the application raised {error}; {ended}")
    said = f": {driver.said}" if driver.said else ""
    return Cause(SparkReason.APPLICATION_FAILED, f"{ended}{said}")


def _pod_cause(pod: SparkPod, role: str, unschedulable: SparkReason) -> Cause:
    if pod.image_trouble:
        words = f"image {pod.image} of {role} pod {pod.name} cannot be pulled: {pod.waiting}: {pod.said}"
        return Cause(SparkReason.IMAGE_UNAVAILABLE, words)
    if pod.waiting:
        return Cause(SparkReason.CONTAINER_NOT_STARTED, f"{role} pod {pod.name}: {pod.waiting}: {pod.said}")
    if pod.unschedulable:
        return Cause(unschedulable, f"no node takes {role} pod {pod.name}: {pod.unschedulable}")
    return Cause(SparkReason.WAITING, f"{role} pod {pod.name} starts")


def _failing(pod: SparkPod) -> Cause:
    if pod.exit_reason == _OUT_OF_MEMORY:
        words = f"executor pod {pod.name} ran out of memory: raise executor.memoryOverhead or executor.memory"
        return Cause(SparkReason.EXECUTORS_OUT_OF_MEMORY, words)
    said = f": {pod.said}" if pod.said else ""
    return Cause(SparkReason.EXECUTORS_FAILING, f"executor pod {pod.name} ended with status {pod.exit_code}{said}")
