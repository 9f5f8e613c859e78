"""Between engine and worker: hands tasks out, turns outcomes into completions, retries, results and dead letters.

Lives on the event loop's thread; nothing here blocks. Keeps: a record is complete only after everything that it
produced was acknowledged, and no outcome is dropped silently.
"""

import asyncio
import logging
import random
import time
from collections.abc import Sequence
from functools import partial
from typing import Protocol

from parallel_consumer_runtime.core import Engine, RetryPolicy, Task
from parallel_consumer_runtime.dead_letters import dead_letter
from parallel_consumer_runtime.handlers import Context, DeadLetter, Result, Retry, Returned, Skip
from parallel_consumer_runtime.workers.contract import Worker

_log = logging.getLogger(__name__)
_LOGGED_FAILURES_PER_S = 5


class Sender(Protocol):
    """What results and dead letters are sent with."""

    def send(self, topic: str, results: Sequence[Result], delivery: "_Delivery") -> None:
        """Produce all of them; `delivery` is told once."""
        ...


class _Delivery(Protocol):
    def __call__(self, error: str | None) -> None: ...


class Counters:
    """What happened since the process began. Plain numbers, read by the snapshot."""

    __slots__ = ("busy_s", "calls", "dead_lettered", "failures", "first_handled_at", "ignored")

    def __init__(self) -> None:
        self.calls = 0
        self.failures = 0
        self.dead_lettered = 0
        self.ignored = 0
        self.busy_s = 0.0
        """Time spent in handlers, summed over all calls, seconds."""
        self.first_handled_at: float | None = None
        """Unix time, seconds."""


class Dispatcher:
    """The worker's source of tasks.

    Args:
        engine: which record may run now.
        sender: for results and dead letters; None when neither topic is configured.
        member: the pod's name.
        results_topic: where returned records go.
        dead_letter_topic: where records go that used up their attempts.
        policy: attempts and backoff; replaced when the live settings change.
    """

    def __init__(  # noqa: PLR0917 - each is one collaborator, named at the only call
        self,
        engine: Engine,
        sender: Sender | None,
        member: str,
        results_topic: str | None,
        dead_letter_topic: str | None,
        policy: RetryPolicy,
    ) -> None:
        self.engine = engine
        self.policy = policy
        self.counters = Counters()
        self.worker: Worker | None = None
        self.running: dict[Task, None] = {}
        """Tasks with the handler, the oldest first."""
        self._sender = sender
        self._member = member
        self._results_topic = results_topic
        self._dead_letter_topic = dead_letter_topic
        self._first_context = Context(member, 1)
        self._retry_timer: asyncio.Handle | None = None
        self._retry_timer_due = 0.0
        self._logged_at = 0.0
        self._logged = 0

    @property
    def limit(self) -> int:
        """How many tasks may be with handlers at once."""
        return self.engine.limit

    def wake(self) -> None:
        """Let the worker take what may run now."""
        runnable = self.engine.runnable
        if runnable and self.worker is not None:
            self.worker.wake(runnable)

    def take(self) -> Task | None:
        """Return the next task, None when none may run now."""
        task = self.engine.take(time.perf_counter())
        if task is not None:
            self.running[task] = None
        return task

    def context(self, task: Task) -> Context:
        """Return what the handler may know of this call."""
        return self._first_context if task.attempt == 1 else Context(self._member, task.attempt)

    def succeeded(self, task: Task, returned: Returned) -> None:
        """The handler returned: complete, or complete once its results are acknowledged."""
        self._ended(task)
        if returned is None:
            self._completed()
            self.engine.complete(task)
            return
        try:
            results = [returned] if isinstance(returned, Result) else list(returned)
        except Exception as error:  # noqa: BLE001 - a generator is the handler's code, and anything may be returned
            self._fail(task, error)
            return
        if not results:
            self._completed()
            self.engine.complete(task)
        elif self._results_topic is None or self._sender is None:
            self._fail(task, TypeError("the handler returned results, and spec.results.topic is not set"))
        elif (strange := _strange(results)) is not None:
            self._fail(task, TypeError(f"the handler returned {strange}: return context.result(…) or None"))
        else:
            self._send(task, self._results_topic, results)

    def failed(self, task: Task, error: BaseException) -> None:
        """The handler raised: skip, dead letter, or another attempt."""
        self._ended(task)
        if isinstance(error, Skip):
            self.counters.ignored += 1
            self._completed()
            self.engine.complete(task)
            self.wake()
        else:
            self._fail(task, error)

    def returned(self, task: Task) -> None:
        """The handler was never called: no attempt is counted, and the record is the next to run."""
        del self.running[task]
        task.attempt -= 1
        self._retry(task, 0.0)

    def _ended(self, task: Task) -> None:
        del self.running[task]
        counters = self.counters
        counters.calls += 1
        counters.busy_s += time.perf_counter() - task.started_at

    def _completed(self) -> None:
        if self.counters.first_handled_at is None:
            self.counters.first_handled_at = time.time()

    def _fail(self, task: Task, error: BaseException) -> None:
        self.counters.failures += 1
        final = isinstance(error, DeadLetter) or self.policy.exhausted(task.attempt)
        if final and self._dead_letter_topic is not None and self._sender is not None:
            self._log_failure(task, error, "goes to the dead-letter topic")
            letter = dead_letter(task, error, self._member, time.time())
            self._send(task, self._dead_letter_topic, [letter], dead=True)
            return
        after_s = error.after_s if isinstance(error, Retry) else None
        if after_s is None:
            after_s = self.policy.backoff_s(task.attempt, random.random())  # noqa: S311 - spreads load, hides nothing
        self._log_failure(task, error, f"is tried again in {after_s:.3f} s")
        self._retry(task, after_s)

    def _send(self, task: Task, topic: str, results: Sequence[Result], *, dead: bool = False) -> None:
        assert self._sender is not None
        self.engine.await_acknowledgement()
        self._sender.send(topic, results, partial(self._delivered, task, dead))

    def _delivered(self, task: Task, dead: bool, error: str | None) -> None:  # noqa: FBT001 - bound by partial
        if error is None:
            self.counters.dead_lettered += dead
            self._completed()
            self.engine.acknowledge(task)
        else:
            # The handler did its part, so this is no attempt of its own.
            task.attempt -= 1
            after_s = self.policy.backoff_s(1, random.random())  # noqa: S311 - as above
            self._log_failure(task, RuntimeError(f"what it produced was not acknowledged: {error}"), "is handled again")
            self._retry(task, after_s, produced=True)
        self.wake()

    def _retry(self, task: Task, after_s: float, *, produced: bool = False) -> None:
        loop = asyncio.get_running_loop()
        self.engine.retry(task, loop.time() + after_s, produced=produced)
        self._schedule_retries()
        self.wake()

    def _schedule_retries(self) -> None:
        due = self.engine.next_retry_at
        if self._retry_timer is not None:
            if due is not None and self._retry_timer_due <= due:
                return
            self._retry_timer.cancel()
            self._retry_timer = None
        if due is not None:
            # uvloop returns a handle without when() for a time that is past, so it is kept here.
            self._retry_timer_due = due
            self._retry_timer = asyncio.get_running_loop().call_at(due, self._wake_retries)

    def _wake_retries(self) -> None:
        self._retry_timer = None
        self.engine.wake_retries(asyncio.get_running_loop().time())
        self._schedule_retries()
        self.wake()

    def _log_failure(self, task: Task, error: BaseException, what_next: str) -> None:
        now = time.monotonic()
        if now - self._logged_at >= 1:
            if self._logged > _LOGGED_FAILURES_PER_S:
                _log.warning("%d more failures were not logged", self._logged - _LOGGED_FAILURES_PER_S)
            self._logged_at, self._logged = now, 0
        self._logged += 1
        if self._logged <= _LOGGED_FAILURES_PER_S:
            record = task.record
            _log.warning(
                "%s[%d]@%d attempt %d: %s: %s; the record %s",
                record.topic,
                record.partition,
                record.offset,
                task.attempt,
                type(error).__name__,
                error,
                what_next,
            )


def _strange(results: Sequence[object]) -> str | None:
    """Return the type of the first that is no Result; users' handlers are not all type-checked."""
    return next((type(result).__name__ for result in results if not isinstance(result, Result)), None)
