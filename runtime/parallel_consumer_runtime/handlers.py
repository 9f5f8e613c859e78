"""What a user writes against: a record comes in, an outcome goes out.

A handler is `package.module:function`, called as `handler(record, context)`; `async def` with the Async worker, a
plain function with Thread or Process. It returns None (done), one `Result` or an iterable of them (done once every one of them
was acknowledged by the broker), or raises (see Outcome). With `spec.processing.batch` it is called as
`handler(records, context)` and returns None (all are done), or a list with one outcome for each record: None, a `Result`, an
iterable of them, or an exception. With `spec.processing.deferral` it may call `context.defer()` and return None: the record is
done when the completion is called. An outcome is one of:

    Outcome
    ├── Retry         call me again with this record, its key waits
    ├── Skip          complete, on purpose, without effect
    └── DeadLetter    to the dead-letter topic now, without further attempts

Any other exception is a failed attempt: the retry policy decides.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import NamedTuple

Headers = tuple[tuple[str, bytes | None], ...]


class Record(NamedTuple):
    """One record as it was consumed. Immutable; safe to hand to other threads."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    """Milliseconds since 1970; -1 when the broker gave none."""
    headers: Headers


class Result(NamedTuple):
    """A record to produce to the results topic. Make one with `context.result(…)`."""

    key: bytes | str | None
    value: bytes | str | None
    headers: Sequence[tuple[str, bytes | str | None]]
    partition: int | None
    """None lets the key's hash decide (murmur2, as the Java client)."""


class Completion:
    """Ends a deferred record, once, from any thread; what comes second changes nothing.

    Args:
        settle: called with what was returned or raised; returns whether it was the first.
    """

    __slots__ = ("_settle",)

    def __init__(self, settle: "Callable[[Returned, BaseException | None], bool]") -> None:
        self._settle = settle

    def complete(self, returned: "Returned" = None) -> bool:
        """The record is done, once these results are acknowledged. Return False when it was ended before, or timed out."""
        return self._settle(returned, None)

    def fail(self, error: BaseException) -> bool:
        """The attempt failed, as if the handler had raised this. Return False as `complete` does."""
        return self._settle(None, error)


class Context:
    """What a handler may know of its call. Immutable; safe to hand to other threads."""

    __slots__ = ("attempt", "member")

    def __init__(self, member: str, attempt: int) -> None:
        self.member = member
        """The pod's name, which is the static member's id."""
        self.attempt = attempt
        """1 for the first call with this record by this process."""

    def defer(self) -> Completion:
        """Let the record be completed later.

        Returns:
            The completion to call, from any thread, before `spec.processing.deferral.timeout` is over.

        Raises:
            RuntimeError: when deferral is not set, or was asked for twice.
        """
        msg = "context.defer() needs spec.processing.deferral, which is not set"
        raise RuntimeError(msg)

    def result(
        self,
        *,
        key: bytes | str | None = None,
        value: bytes | str | None = None,
        headers: Sequence[tuple[str, bytes | str | None]] = (),
        partition: int | None = None,
    ) -> Result:
        """Return a record for the results topic; it is produced when the handler returns it."""
        return Result(key, value, headers, partition)


_YEAR_S = 366 * 86_400.0


class Outcome(Exception):  # noqa: N818 - an outcome is no error; the name is what a handler says
    """Base of what a handler raises on purpose."""


class Retry(Outcome):
    """Call the handler again with this record; counts as an attempt.

    Args:
        after_s: seconds to wait, a year at most; None takes the retry policy's backoff.
        reason: goes to the log and to the dead letter's headers.

    Raises:
        ValueError: after_s is no time that can be waited.
    """

    after_s: float | None = None

    def __init__(self, after_s: float | None = None, reason: str = "") -> None:
        if after_s is not None and not 0 <= after_s <= _YEAR_S:
            msg = f"Retry(after_s={after_s!r}): give seconds from 0 to a year, or None"
            raise ValueError(msg)
        super().__init__(reason)
        self.after_s = after_s


class Skip(Outcome):
    """The record is complete on purpose, without effect. Counted."""


class DeadLetter(Outcome):
    """The record goes to the dead-letter topic now, without further attempts."""


Returned = Result | Iterable[Result] | None
AsyncHandler = Callable[[Record, Context], Awaitable[Returned]]
SyncHandler = Callable[[Record, Context], Returned]
BatchReturned = Sequence[Returned | BaseException] | None
AsyncBatchHandler = Callable[[Sequence[Record], Context], Awaitable[BatchReturned]]
SyncBatchHandler = Callable[[Sequence[Record], Context], BatchReturned]
Handler = AsyncHandler | SyncHandler | AsyncBatchHandler | SyncBatchHandler
