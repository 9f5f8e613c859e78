"""Between engine and worker: hands calls out, and each task's outcome on. The worker's source.

Lives on the event loop's thread; nothing here blocks.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import cast

from parallel_consumer_runtime.core import Batch, BatchShape, Engine, GivenUp, RetryPolicy, Task
from parallel_consumer_runtime.deferrals import Deferral, DeferringContext
from parallel_consumer_runtime.errors import RuntimeFailure
from parallel_consumer_runtime.handlers import Context, Returned
from parallel_consumer_runtime.outcomes import CLOCK, Clock, Counters, Outcomes, Routes, Sender
from parallel_consumer_runtime.workers.contract import Call, Worker, tasks_of

_TIMER_PAUSE_S = 0.001


class Dispatcher:
    """The worker's source of calls.

    Args:
        engine: which record may run now.
        sender: for what records become; None when there is no route.
        member: the pod's name.
        routes: where what a record becomes goes.
        policy: attempts and backoff.
        on_failure: told when so many records are given up that the process should end.
        shape: of batches; None for one record at a time.
        deferral_timeout_s: how long a deferred record may take; None when records cannot be deferred.
        given_up: when to stop giving up records.
        clock: the time.
    """

    def __init__(
        self,
        engine: Engine,
        sender: Sender | None,
        member: str,
        routes: Routes,
        policy: RetryPolicy,
        *,
        on_failure: Callable[[RuntimeFailure], None],
        shape: BatchShape | None = None,
        deferral_timeout_s: float | None = None,
        given_up: GivenUp | None = None,
        clock: Clock = CLOCK,
    ) -> None:
        self.engine = engine
        self.worker: Worker | None = None
        self.running: dict[Call, Context | None] = {}
        """Calls that have not ended, the oldest first, deferred ones included."""
        self._outcomes = Outcomes(engine, sender, member, routes, policy, given_up, on_failure, self.wake, clock)
        self._member = member
        self._now = clock.monotonic
        self._shape = shape
        self._deferral_timeout_s = deferral_timeout_s
        self._plain = shape is None and deferral_timeout_s is None
        self._deferred: dict[Deferral, Task] = {}
        self._first_context = Context(member, 1)
        self._retry_timer: asyncio.Handle | None = None
        self._retry_timer_due = 0.0
        self._not_before = 0.0

    @property
    def counters(self) -> Counters:
        """What happened since the process began."""
        return self._outcomes.counters

    @property
    def outcomes(self) -> Outcomes:
        """What becomes of calls that have ended."""
        return self._outcomes

    @property
    def deferred(self) -> int:
        """How many records wait for their completion."""
        return len(self._deferred)

    @property
    def limit(self) -> int:
        """How many calls may be with handlers at once."""
        return self.engine.limit

    def set_policy(self, policy: RetryPolicy) -> None:
        """Replace attempts and backoff, from the next failure on."""
        self._outcomes.policy = policy

    def wake(self) -> None:
        """Let the worker take what may run now, and set the timer for what may run later."""
        runnable = self.engine.runnable
        if runnable and self.worker is not None:
            self.worker.wake(runnable)
        self._schedule()

    # The worker's source

    def take(self) -> Call | None:
        """Return the next call, None when none may run now."""
        now = self._now()
        counters = self._outcomes.counters
        call: Call | None
        if self._shape is None:
            call = self.engine.take(now)
            if call is not None:
                counters.started += 1
                counters.queued_s += now - call.offered_at
        else:
            tasks = self.engine.take_batch(self._shape, now)
            call = Batch(tasks) if tasks else None
            counters.started += len(tasks)
            counters.queued_s += sum(now - task.offered_at for task in tasks)
        if call is None:
            self._schedule()
        else:
            self.running[call] = None
        return call

    def context(self, call: Call) -> Context:
        """Return what the handler may know of this call."""
        attempt = call.attempt
        if self._deferral_timeout_s is not None:
            loop = asyncio.get_running_loop()
            context = DeferringContext(self._member, attempt, loop, self._completion_came, self._came_late)
            self.running[call] = context
            return context
        return self._first_context if attempt == 1 else Context(self._member, attempt)

    def succeeded(self, call: Call, returned: object) -> None:
        """The handler returned."""
        if self._plain:
            self._ended(call)
            self._outcomes.done(cast("Task", call), cast("Returned", returned))
            return
        if isinstance(call, Batch):
            self._ended(call)
            self._outcomes.counters.together += len(call.tasks) - 1
            self._batch_ended(call, returned)
            return
        context = self.running[call]
        if isinstance(context, DeferringContext) and context.deferral is not None:
            self._defer(call, context.deferral, returned)
            return
        self._ended(call)
        self._outcomes.done(call, cast("Returned", returned))

    def failed(self, call: Call, error: BaseException) -> None:
        """The handler raised."""
        context = self.running[call]
        if isinstance(context, DeferringContext) and context.deferral is not None:
            context.deferral.end()
        self._ended(call)
        tasks = tasks_of(call)
        self._outcomes.counters.together += len(tasks) - 1
        for task in tasks:
            self._outcomes.failed(task, error)

    def returned(self, call: Call) -> None:
        """The handler was never called: no attempt is counted, and the records are the next to run."""
        del self.running[call]
        for task in tasks_of(call):
            task.attempt -= 1
            self._outcomes.again(task, 0.0)

    def _ended(self, call: Call) -> None:
        del self.running[call]
        counters = self._outcomes.counters
        counters.calls += 1
        counters.busy_s += self._now() - call.started_at

    def _batch_ended(self, batch: Batch, returned: object) -> None:
        tasks = batch.tasks
        if returned is None:
            for task in tasks:
                self._outcomes.done(task, None)
            return
        outcomes = cast("Sequence[object]", returned) if isinstance(returned, Sequence) else ()
        if len(outcomes) != len(tasks):
            error = TypeError(
                f"a handler of batches returns None or a list of {len(tasks)} outcomes, one for each record"
            )
            for task in tasks:
                self._outcomes.failed(task, error)
            return
        for task, outcome in zip(tasks, outcomes, strict=True):
            if isinstance(outcome, BaseException):
                self._outcomes.failed(task, outcome)
            else:
                self._outcomes.done(task, cast("Returned", outcome))

    # Deferral

    def _defer(self, task: Task, deferral: Deferral, returned: object) -> None:
        if returned is not None and deferral.end():
            self._ended(task)
            self._outcomes.failed(task, TypeError("a handler that defers returns None: give results to the completion"))
        elif deferral.outcome is not None:
            self._settle(task, deferral)
        else:
            self._deferred[deferral] = task
            assert self._deferral_timeout_s is not None
            deferral.timer = asyncio.get_running_loop().call_later(self._deferral_timeout_s, self._reap, deferral)

    def _completion_came(self, deferral: Deferral) -> None:
        # A completion may come before its handler has returned; then `_defer` finds its outcome.
        if (task := self._deferred.pop(deferral, None)) is not None:
            if deferral.timer is not None:
                deferral.timer.cancel()
            self._settle(task, deferral)
            self.wake()

    def _settle(self, task: Task, deferral: Deferral) -> None:
        assert deferral.outcome is not None
        returned, error = deferral.outcome
        self._ended(task)
        if error is None:
            self._outcomes.done(task, returned)
        else:
            self._outcomes.failed(task, error)

    def _reap(self, deferral: Deferral) -> None:
        if deferral.end() and (task := self._deferred.pop(deferral, None)) is not None:
            self._outcomes.counters.reaped += 1
            self._ended(task)
            error = TimeoutError(f"its deferred completion did not come within {self._deferral_timeout_s:g} s")
            self._outcomes.failed(task, error)

    def _came_late(self) -> None:
        self._outcomes.counters.late_completions += 1

    # Timers

    def _schedule(self) -> None:
        due = self.engine.next_retry_at
        if due is not None:
            due = max(due, self._not_before)
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
        now = self._now()
        self.engine.wake_retries(now)
        # What was due and is not taken, because the worker is full, must not keep the loop busy.
        self._not_before = now + _TIMER_PAUSE_S
        self.wake()
