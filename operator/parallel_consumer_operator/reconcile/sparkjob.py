"""Reconciles one SparkJob: observe, decide, act, report, until nothing differs.

Invariants: it acts on what it has just read; a Job is created once and never applied again, so that there is at most one
for each attempt; an attempt that is stopped has its cause and its log's end written in the same request; when nothing
differs it sends no mutating request.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from pydantic import ValidationError

from parallel_consumer_operator.api import Identity, SparkJob, SparkJobStatus, SparkReason, SparkState
from parallel_consumer_operator.desired.naming import Manifest
from parallel_consumer_operator.desired.spark import batch_job, config_map, service, spark_refusals
from parallel_consumer_operator.desired.spark.naming import (
    DRIVER,
    ENDED,
    ENDED_AT,
    ENDED_LOG,
    ENDED_MESSAGE,
)
from parallel_consumer_operator.desired.windows import ledger_name, ledger_of
from parallel_consumer_operator.errors import (
    ConflictError,
    ForbiddenError,
    PermanentError,
    RefusedError,
    RetryableError,
)
from parallel_consumer_operator.kube import Key, Kube
from parallel_consumer_operator.reconcile.act import ActMemory, apply_children
from parallel_consumer_operator.reconcile.observe import foreign_children, owned
from parallel_consumer_operator.reconcile.sparkjob_observe import SparkObservation, observe_spark_job, refusals_about
from parallel_consumer_operator.reconcile.writing import StatusWriter, WriteMemory
from parallel_consumer_operator.sparkjob import (
    Attempt,
    Begin,
    Decision,
    Remove,
    Seen,
    SparkPod,
    Stop,
    decide,
    refused_spark_status,
    spark_status_of,
)
from parallel_consumer_operator.sparkjob.causes import Cause
from parallel_consumer_operator.sparkjob.logs import LOG_BYTES, LOG_LINES
from parallel_consumer_runtime.settings import explain
from parallel_consumer_runtime.settings.spark import SPARK_JOB_KIND

REFUSED_INTERVAL_S = 10.0
"""How soon a child that the server refuses is tried again, and a name that is taken looked at: nobody tells when that ends."""
WAITING_INTERVAL_S = 10.0
"""How soon a run is looked at again that its ledger does not name."""
LOG_PATIENCE_S = 30.0
"""How long an attempt's end waits for its log where the node does not answer."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Memory:
    """What is remembered of one object between reconciles. Losing it is safe."""

    acts: ActMemory = field(default_factory=ActMemory)
    writes: WriteMemory = field(default_factory=WriteMemory)
    said: str | None = None
    """The refusal that the log tells of already."""
    log_since_s: float | None = None
    """Since when a log cannot be read, on the monotonic clock."""


class SparkJobReconciler:
    """Makes the world as SparkJobs wish. One key at a time per object; the queue sees to that.

    Args:
        kube: the API server.
        writer: how statuses are written.
        account: the service account of drivers.
        clock: the monotonic clock, seconds.
        now: the wall clock.
        ended: told of the consumer whose window's run has ended.
    """

    def __init__(
        self,
        kube: Kube,
        writer: StatusWriter,
        account: str,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        *,
        ended: Callable[[Key], None] = lambda _: None,
    ) -> None:
        self._ended = ended
        self._kube = kube
        self._writer = writer
        self._account = account
        self._clock = clock
        self._now = now
        self._memories: dict[Key, Memory] = {}

    @property
    def known(self) -> list[Key]:
        """The objects that were there when last looked at."""
        return list(self._memories)

    async def reconcile(self, key: Key) -> float | None:
        """Bring one object a step further.

        Returns:
            Seconds after which to come again even without an event; None when all is settled.

        Raises:
            OperatorError: the API server did not play along; try again later.
        """
        manifest = await self._kube.get(SPARK_JOB_KIND, key.namespace, key.name)
        if manifest is None or "deletionTimestamp" in manifest["metadata"]:
            self._memories.pop(key, None)  # children go by their owner references
            return None
        memory = self._memories.setdefault(key, Memory())
        try:
            job = SparkJob.parse(manifest)
        except ValidationError as error:
            problem = Cause(SparkReason.SPEC_REFUSED, "; ".join(explain(error, "spec")))
            return await self._refuse(manifest, memory, problem)
        if job.status.state.final:
            if job.controlled and job.spec.window is not None:
                self._ended(Key(key.namespace, job.spec.window.consumer))
            return await self._finished(job, memory)
        if not job.status.attempts and not await self._named_by_ledger(job):
            return WAITING_INTERVAL_S  # whoever names it says so
        around = await observe_spark_job(self._kube, job.identity)
        return await self._converge(manifest, job, around, memory)

    async def _named_by_ledger(self, job: SparkJob) -> bool:
        """Whether a run of a consumer's window may begin: its ledger names the very object, so that no other run holds its offsets."""
        window = job.spec.window
        if window is None or not job.controlled:
            return True
        found = await self._kube.get("ConfigMap", job.identity.namespace, ledger_name(window.consumer, window.entry))
        if found is None:
            return False
        try:
            opened = ledger_of(found).open
        except ValueError as error:
            _log.warning("%s/%s: %s", job.identity.namespace, job.identity.name, error)
            return False
        return opened is not None and opened.uid == job.identity.uid

    async def _converge(
        self, manifest: Manifest, job: SparkJob, around: SparkObservation, memory: Memory
    ) -> float | None:
        decision, seen = await self._decide(job, around.seen, memory)
        problem = _problem_of(job, around) or await self._apply(job, around, memory)
        if isinstance(decision.act, Begin):
            problem = problem or await self._begin(job, decision.act)
            if problem is not None and decision.attempt == 0:
                return await self._refuse(manifest, memory, problem)
            if problem is not None:
                decision = replace(
                    decision, wait_s=REFUSED_INTERVAL_S
                )  # how the last attempt ended stays in the status
        elif isinstance(decision.act, Stop):
            await self._stop(job.identity, decision.act)
        if decision.state.final or decision.state is SparkState.RETRYING:
            await self._sweep(job.identity, seen)
        self._say(job.identity, memory, problem)
        status = spark_status_of(job, seen, decision, problem)
        held_s = await self._writer.write(job.identity, job.status, status, memory.writes, self._clock())
        waits = [decision.wait_s, held_s, None if problem is None else REFUSED_INTERVAL_S]
        return min((wait for wait in waits if wait is not None), default=None)

    async def _finished(self, job: SparkJob, memory: Memory) -> float | None:
        """Nothing follows an end that is recorded but its time to live."""
        decision = decide(job, Seen(), self._now())
        if isinstance(decision.act, Remove):
            await self._remove(job.identity)
        elif job.status.observed_generation != job.identity.generation:
            status = job.status.model_copy(update={"observed_generation": job.identity.generation})
            await self._writer.write(job.identity, job.status, status, memory.writes, self._clock())
        return decision.wait_s

    async def _decide(self, job: SparkJob, seen: Seen, memory: Memory) -> tuple[Decision, Seen]:
        """Decide, and ask for what the decision needs to know more."""
        decision = decide(job, seen, self._now())
        if decision.refusals_of is not None:
            seen = seen.with_refusals(await self._refusals(job.identity, decision.refusals_of))
            decision = decide(job, seen, self._now())
        if decision.log_of is not None:
            log = await self._read_log(job.identity, decision.log_of, memory, last=decision.log_is_last)
            seen = seen.with_log(log)
            decision = decide(job, seen, self._now())
        return decision, seen

    async def _refusals(self, owner: Identity, attempt: Attempt) -> list[str]:
        try:
            return await refusals_about(self._kube, owner, attempt.uid)
        except PermanentError as error:
            return [f"its events cannot be read: {error}"]

    async def _read_log(self, owner: Identity, pod: SparkPod, memory: Memory, *, last: bool) -> str:
        """Return the end of a driver's log; a log that nobody gives us holds up nothing for long."""
        try:
            log = await self._kube.log_tail(owner.namespace, pod.name, DRIVER, lines=LOG_LINES, size_bytes=LOG_BYTES)
        except RetryableError as error:
            since_s = memory.log_since_s = memory.log_since_s or self._clock()
            if last and self._clock() < since_s + LOG_PATIENCE_S:
                raise
            log = f"(the log cannot be read: {error})"
        except PermanentError as error:
            log = f"(the log cannot be read: {error})"
        memory.log_since_s = None
        return log

    async def _apply(self, job: SparkJob, around: SparkObservation, memory: Memory) -> Cause | None:
        """Apply ConfigMap and Service. Return why the server did not take them."""
        wished = (config_map(job.identity, job.spec), service(job.identity))
        try:
            await apply_children(self._kube, wished, around.children, memory.acts)
        except (RefusedError, ForbiddenError) as error:
            return Cause(SparkReason.CHILD_REFUSED, str(error))
        return None

    async def _begin(self, job: SparkJob, begin: Begin) -> Cause | None:
        """Create the Job of an attempt, or find it made before. Return why there is none."""
        owner = job.identity
        wished = batch_job(owner, job.spec, attempt=begin.attempt, failures=begin.failures, account=self._account)
        name = wished["metadata"]["name"]
        try:
            await self._kube.create(wished)
        except ConflictError:
            found = await self._kube.get("Job", owner.namespace, name)
            taken = found is not None and not owned(owner, found)
            return Cause(SparkReason.NAME_TAKEN, f"Job {name} belongs to someone else; rename one") if taken else None
        except (RefusedError, ForbiddenError) as error:
            return Cause(SparkReason.CHILD_REFUSED, str(error))
        _log.info("%s/%s: attempt %d begins", owner.namespace, owner.name, begin.attempt)
        return None

    async def _stop(self, owner: Identity, stop: Stop) -> None:
        attempt, cause = stop.attempt, stop.cause
        notes = {
            ENDED: str(cause.reason),
            ENDED_AT: self._now().strftime("%Y-%m-%dT%H:%M:%SZ"),
            ENDED_MESSAGE: cause.words,
            ENDED_LOG: stop.log,
        }
        _log.info("%s/%s: attempt %d is stopped: %s", owner.namespace, owner.name, attempt.number, cause.words)
        await self._kube.stop_job(owner.namespace, attempt.name, attempt.uid, notes)

    async def _sweep(self, owner: Identity, seen: Seen) -> None:
        """Delete what an attempt left behind, before its end is recorded: afterwards nobody looks."""
        for pod in seen.left_behind():
            _log.info("%s/%s: executor %s outlived its driver", owner.namespace, owner.name, pod.name)
            await self._kube.delete_pod(owner.namespace, pod.name, pod.uid)

    async def _remove(self, owner: Identity) -> None:
        _log.info("%s/%s: its time to live is over", owner.namespace, owner.name)
        await self._kube.delete(SPARK_JOB_KIND, owner.namespace, owner.name, owner.uid)

    async def _refuse(self, manifest: Manifest, memory: Memory, problem: Cause) -> float | None:
        """Nothing can be begun."""
        owner, before = Identity.of(manifest), SparkJobStatus.of(manifest)
        self._say(owner, memory, problem)
        after = refused_spark_status(owner, before, problem)
        await self._writer.write(owner, before, after, memory.writes, self._clock())
        settled = problem.reason in {SparkReason.SPEC_REFUSED, SparkReason.TEMPLATE_REFUSED}
        return None if settled else REFUSED_INTERVAL_S

    def _say(self, owner: Identity, memory: Memory, problem: Cause | None) -> None:
        words = None if problem is None else problem.words
        if problem is not None and memory.said != words:
            _log.warning("%s/%s: %s: %s", owner.namespace, owner.name, problem.reason, words)
        memory.said = words


def _problem_of(job: SparkJob, around: SparkObservation) -> Cause | None:
    """Return what stands in the way of rendering or applying children; what runs already goes on."""
    if problems := spark_refusals(job.spec):
        return Cause(SparkReason.TEMPLATE_REFUSED, "; ".join(problems))
    if foreign := foreign_children(job.identity, around.children):
        taken = "; ".join(f"{name} belongs to someone else; rename one" for name in foreign)
        return Cause(SparkReason.NAME_TAKEN, taken)
    return None
