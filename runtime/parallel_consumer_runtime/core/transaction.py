"""How a transaction ends: what the cut admits, what is asked of the broker, and what an abort or a fence leads to. No I/O.

Keeps: a record's results and its completion are in one transaction or in none. When anything of it fails, everything since
the last one counts as never done.

`cut` is a generator: it yields what is to be done next, and is sent what became of it. Whoever drives it does the waiting.
"""

from collections.abc import Callable, Generator, Sequence
from enum import Enum
from typing import NamedTuple

from parallel_consumer_runtime.core.engine import Engine
from parallel_consumer_runtime.core.outbox import Outbox
from parallel_consumer_runtime.core.partition import PartitionCommit, PartitionKey
from parallel_consumer_runtime.errors import TemporaryError

RETRIED_FOR_S = 20.0


class Act(Enum):
    """What is to be done next. All but FLUSH and PAUSE may be refused."""

    FLUSH = "wait until the outbox is idle"
    OFFSETS = "make the planned offsets part of the transaction"
    COMMIT = "commit it"
    ABORT = "abort it"
    BEGIN = "begin the next"
    PAUSE = "wait a moment before the same is tried again"


class Refusal(NamedTuple):
    """Why something was not done, or why nobody knows whether it was."""

    words: str
    again: bool = False
    """The same may be tried again."""
    final: bool = False
    """Nothing can be done any more: another life of this member has begun, or the client has given up."""


class End(Enum):
    """How a cut ended."""

    NOTHING = "there was nothing to commit"
    COMMITTED = "committed"
    ABORTED = "aborted, and everything since the last commit is to be done again"


Cut = Generator[Act, Refusal | None, End]
_SPOILED = Refusal("partitions were lost")


class Transaction:
    """Ends one transaction after the other. Every call comes from the engine's thread.

    Args:
        engine: which knows what is complete.
        outbox: what its tasks produce.
        rewind: told, after an abort, which partitions have to start again where the group's commits are. The engine has
            given them up by then, and nothing was sent since.
        now: monotonic seconds.
        retried_for_s: how long the same is tried again.
    """

    def __init__(
        self,
        engine: Engine,
        outbox: Outbox,
        rewind: Callable[[list[PartitionKey]], None],
        now: Callable[[], float],
        retried_for_s: float = RETRIED_FOR_S,
    ) -> None:
        self._engine = engine
        self._outbox = outbox
        self._rewind = rewind
        self._now = now
        self._retried_for_s = retried_for_s
        self.planned: Sequence[PartitionCommit] = ()
        """What OFFSETS is about."""
        self.cause = ""
        """Why the last transaction was aborted."""

    def cut(self) -> Cut:
        """End the open transaction and begin the next. One at a time.

        Raises:
            TemporaryError: fenced, or nobody can know how it ended; the process must end.
        """
        outbox = self._outbox
        outbox.holding = True
        try:
            refusal = yield from self._commit()
            if refusal is not None:
                yield from self._abort(refusal)
                return End.ABORTED
            if not self.planned:
                return End.NOTHING
            self._engine.committed(self.planned, acknowledged=True)
            yield from self._begin()
            return End.COMMITTED
        finally:
            outbox.holding = False

    def _commit(self) -> Generator[Act, Refusal | None, Refusal | None]:
        """Commit what is complete. Return why that was not possible."""
        outbox = self._outbox
        self.planned = ()
        if not outbox.idle:
            yield Act.FLUSH
        if outbox.failure is not None:
            return Refusal(outbox.failure.words)
        # What was sent for a partition that was given up since is in nobody's offsets.
        if outbox.spoiled:
            return _SPOILED
        self.planned = self._engine.commits()
        if not self.planned:
            return None
        if (refusal := (yield from self._insist(Act.OFFSETS))) is not None:
            return refusal
        # The offsets may have been sent by a member that has joined again meanwhile, and so have been taken for partitions
        # that others read before: what it gave up until then, it has heard of by now.
        if outbox.spoiled or not all(commit.source.live for commit in self.planned):
            return _SPOILED
        if (refusal := (yield from self._insist(Act.COMMIT))) is None:
            outbox.renew()
        return refusal

    def _abort(self, cause: Refusal) -> Generator[Act, Refusal | None, None]:
        if cause.final:
            msg = f"the transactional producer ended: {cause.words}"
            raise TemporaryError(msg)
        self.cause = cause.words
        if (refusal := (yield from self._insist(Act.ABORT))) is not None:
            msg = f"a transaction could not be aborted: {refusal.words}"
            raise TemporaryError(msg)
        # Before anything is sent again, and in one go: a result that a task of before sent now would be in the next
        # transaction, and its record's next result as well.
        keys = list(self._engine.partitions)
        self._engine.revoke(keys)
        self._rewind(keys)
        self._outbox.forget()
        yield from self._begin()

    def _begin(self) -> Generator[Act, Refusal | None, None]:
        if (refusal := (yield Act.BEGIN)) is not None:
            msg = f"a transaction could not be begun: {refusal.words}"
            raise TemporaryError(msg)

    def _insist(self, act: Act) -> Generator[Act, Refusal | None, Refusal | None]:
        """Try again while another try may succeed, until the time for it is over."""
        deadline = self._now() + self._retried_for_s
        while True:
            refusal = yield act
            if refusal is None or not refusal.again or self._now() >= deadline:
                return refusal
            yield Act.PAUSE
