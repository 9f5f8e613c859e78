"""What becomes of a record when its call has ended: complete, results, another attempt, the retry topic, a dead letter.

Lives on the event loop's thread; nothing here blocks. Keeps: a record is complete only after everything that it
produced was acknowledged, and no outcome is dropped silently.
"""

import logging
import random
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, Protocol

from parallel_consumer_runtime.core import Delivery, Engine, GivenUp, Partition, RetryPolicy, Task, Undelivered
from parallel_consumer_runtime.dead_letters import dead_letter
from parallel_consumer_runtime.errors import PermanentError, RuntimeFailure
from parallel_consumer_runtime.handlers import DeadLetter, Result, Retry, Returned, Skip
from parallel_consumer_runtime.outlet import Outlet
from parallel_consumer_runtime.provenance import with_provenance
from parallel_consumer_runtime.results import Refusals, checked
from parallel_consumer_runtime.retry_topic import attempts_before, retry_record
from parallel_consumer_runtime.settings import RetryTopicSpec
from parallel_consumer_runtime.wording import words_of

_log = logging.getLogger(__name__)
_LOGGED_FAILURES_PER_S = 5
_REFUSED_BACKOFF = 6
"""Records whose results were not acknowledged wait as after so many attempts: 32 times the initial backoff."""


class Sender(Protocol):
    """What results, dead letters and retried records are sent with."""

    def send(self, topic: str, results: Sequence[Result], delivery: Delivery, source: Partition) -> None:
        """Produce all of them; `delivery` is told once. `source` is the assignment that they come from."""
        ...


class Routes(NamedTuple):
    """Where records go that a record becomes."""

    results: str | None = None
    """The topic of returned records."""
    dead_letters: str | None = None
    """The topic of records that used up their attempts."""
    retries: RetryTopicSpec | None = None
    """The topic in which failing records wait."""
    bytes_max: int = 64 * 1024**2
    """What may be on its way to all of them before nothing is handed out."""
    provenance: bool = False
    """Results say in headers what they were made of."""


class Clock(NamedTuple):
    """The two clocks; tests have their own."""

    monotonic: Callable[[], float] = time.monotonic
    """Seconds; the event loop's timers run by the same clock."""
    wall: Callable[[], float] = time.time
    """Unix time, seconds."""


CLOCK = Clock()


class Counters:
    """What happened since the process began. Plain numbers, read by the snapshot."""

    __slots__ = (
        "busy_s",
        "calls",
        "dead_lettered",
        "failures",
        "first_handled_at",
        "late_completions",
        "queued_s",
        "reaped",
        "retried",
        "skipped",
        "slow",
        "started",
        "succeeded",
        "together",
    )

    def __init__(self) -> None:
        self.started = 0
        """Records whose call began."""
        self.calls = 0
        """Calls that ended, of one record or of a batch."""
        self.together = 0
        """Records of the calls that ended, each call's first not counted: with `calls`, the attempts that ended."""
        self.failures = 0
        """Records whose attempt failed."""
        self.succeeded = 0
        """Records that are complete, those given up not counted."""
        self.dead_lettered = 0
        self.retried = 0
        """Records acknowledged by the retry topic."""
        self.skipped = 0
        """Records that their handler skipped."""
        self.reaped = 0
        """Deferred records whose completion did not come in time."""
        self.late_completions = 0
        """Completions that came for records that had ended."""
        self.slow = 0
        """Calls that ran longer than `slowAfter`."""
        self.busy_s = 0.0
        """Time spent in handlers, summed over all calls, seconds."""
        self.queued_s = 0.0
        """Time between poll and start, summed over all started records, seconds."""
        self.first_handled_at: float | None = None
        """Unix time, seconds."""


class Outcomes:
    """Settles tasks.

    Args:
        engine: which is told.
        sender: for every route; None when there is none.
        member: the pod's name.
        routes: where what a record becomes goes.
        policy: attempts and backoff; replaced when the live settings change.
        given_up: when to stop giving up records; None for never.
        on_failure: told when to stop.
        changed: called when tasks may run that could not, or wait for a time.
        clock: the time.
    """

    def __init__(  # noqa: PLR0917 - each is one collaborator, named at the only call
        self,
        engine: Engine,
        sender: Sender | None,
        member: str,
        routes: Routes,
        policy: RetryPolicy,
        given_up: GivenUp | None,
        on_failure: Callable[[RuntimeFailure], None],
        changed: Callable[[], None],
        clock: Clock,
    ) -> None:
        self.counters = Counters()
        self.policy = policy
        self._engine = engine
        self._sender = sender
        self._member = member
        self._routes = routes
        self._given_up = given_up
        self._on_failure = on_failure
        self._changed = changed
        self._clock = clock
        self.outlet = Outlet(engine, routes.bytes_max)
        self.refused = Refusals(lambda: engine.bounds.records)
        self._logged_at = 0.0
        self._logged = 0

    @property
    def given_up_recently(self) -> int:
        """How many records were given up of late."""
        return 0 if self._given_up is None else self._given_up.recent

    def done(self, task: Task, returned: Returned) -> None:
        """The handler returned: complete, or complete once its results are acknowledged."""
        if returned is None:
            self._succeeded()
            self._engine.complete(task)
            return
        try:
            results = checked(returned)
        except Exception as error:  # noqa: BLE001 - a generator is the handler's code, and anything may be returned
            self.failed(task, error)
            return
        if not results:
            self._succeeded()
            self._engine.complete(task)
        elif self._routes.results is None:
            self.failed(task, TypeError("the handler returned results, and spec.results.topic is not set"))
        elif (words := self.refused.of(task)) is not None:
            self.failed(task, RuntimeError(f"what it returned was refused before: {words}"))
        else:
            if self._routes.provenance:
                attempts = attempts_before(task.record) + task.attempt
                results = with_provenance(results, task, attempts, self._clock.wall())
            self._send(task, self._routes.results, results, "results")

    def failed(self, task: Task, error: BaseException) -> None:
        """The attempt failed: skip, dead letter, retry topic, or another attempt."""
        if isinstance(error, Skip):
            self.counters.skipped += 1
            self._succeeded()
            self._engine.complete(task)
            self._changed()
            return
        self.counters.failures += 1
        routes = self._routes
        attempts = attempts_before(task.record) + task.attempt
        after_s = error.after_s if isinstance(error, Retry) else None
        if routes.dead_letters is not None and (isinstance(error, DeadLetter) or self.policy.exhausted(attempts)):
            self._give_up(task, error, routes.dead_letters, attempts)
        elif routes.retries is not None and task.attempt >= routes.retries.after_attempts and after_s is None:
            self._log_failure(task, error, "goes to the retry topic")
            retried = retry_record(task, error, routes.retries, random.random(), self._clock.wall())  # noqa: S311 - spreads load
            self._send(task, routes.retries.topic, [retried], "retry")
        else:
            if after_s is None:
                after_s = self.policy.backoff_s(task.attempt, random.random())  # noqa: S311 - spreads load, hides nothing
            self._log_failure(task, error, f"is tried again in {after_s:.3f} s")
            self.again(task, after_s)

    def again(self, task: Task, after_s: float, *, produced: bool = False) -> None:
        """Let a task wait for another attempt."""
        self._engine.retry(task, self._clock.monotonic() + after_s, produced=produced)
        self._changed()

    def _give_up(self, task: Task, error: BaseException, topic: str, attempts: int) -> None:
        if self._given_up is not None and (reason := self._given_up.note(self.counters.succeeded)) is not None:
            record = task.record
            self._on_failure(
                PermanentError(
                    f"{reason}, the last is {record.topic}[{record.partition}]@{record.offset} ({type(error).__name__}: {words_of(error)}): "
                    "spec.processing.deadLetter.stop says to stop instead of giving up more"
                )
            )
            self.again(task, self.policy.max_backoff_s)
            return
        self._log_failure(task, error, "goes to the dead-letter topic")
        self._send(task, topic, [dead_letter(task, error, self._member, self._clock.wall(), attempts)], "dead letter")

    def _send(self, task: Task, topic: str, results: Sequence[Result], what: str) -> None:
        assert self._sender is not None
        if not task.partition.live:
            # Others have its partition: what it comes to is theirs to say.
            self._engine.complete(task)
            self._changed()
            return
        self._engine.await_acknowledgement()
        size_bytes = self.outlet.enter(results)
        self._sender.send(topic, results, partial(self._delivered, task, what, size_bytes), task.partition)

    def _delivered(self, task: Task, what: str, size_bytes: int, error: Undelivered | None) -> None:
        self.outlet.leave(size_bytes)
        if error is None:
            if what == "results":
                self._succeeded()
            else:
                self.counters.dead_lettered += what == "dead letter"
                self.counters.retried += what == "retry"
            self._engine.acknowledge(task)
            self._changed()
            return
        if error.permanent:
            self.refused.remember(task, error.words)
        # The handler did its part, so this is no attempt of its own; when it returns the same again, that is one.
        task.attempt -= 1
        self._log_failure(
            task, RuntimeError(f"what it produced was not acknowledged: {error.words}"), "is handled again"
        )
        # What a broker refused, or did not take within the delivery timeout, it does not take a moment later.
        self.again(task, self.policy.backoff_s(_REFUSED_BACKOFF, random.random()), produced=True)  # noqa: S311 - as above

    def _succeeded(self) -> None:
        counters = self.counters
        counters.succeeded += 1
        if counters.first_handled_at is None:
            counters.first_handled_at = self._clock.wall()

    def _log_failure(self, task: Task, error: BaseException, what_next: str) -> None:
        now = self._clock.monotonic()
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
                words_of(error),
                what_next,
            )
