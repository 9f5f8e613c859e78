"""Bugs on purpose in how transactions end; see `planted.py`."""

from collections.abc import Generator
from typing import Any

from parallel_consumer_runtime.core import Act, Group, Outbox, Refusal, Transaction, Undelivered
from parallel_consumer_runtime.core.outbox import Produce
from parallel_consumer_runtime.kafka import positions
from parallel_consumer_runtime.kafka.librdkafka import Position
from tests.support.simulation import owner
from tests.support.simulation.owner import Owner

# White-box by nature: each reaches into what it breaks.
# pyright: reportPrivateUsage=false

Steps = Generator[Act, Refusal | None, Refusal | None]

_commit = Transaction._commit
_abort = Transaction._abort
_insist = Transaction._insist
_pump = Outbox.pump
_report = Outbox.report


def _planned_too_early(transaction: Transaction) -> Steps:
    """The offsets are those of before the results were acknowledged."""
    commits = transaction._engine.commits()
    engine = transaction._engine
    sound = engine.commits
    engine.commits = lambda keys=None: commits  # type: ignore[method-assign]  # noqa: ARG005 - as what it stands for
    try:
        return (yield from _commit(transaction))
    finally:
        engine.commits = sound  # type: ignore[method-assign]


def _not_rewound(transaction: Transaction, cause: Refusal) -> Generator[Act, Refusal | None, None]:
    """What was in the aborted transaction counts as done."""
    if cause.final or (yield from transaction._insist(Act.ABORT)) is not None:
        yield from _abort(transaction, cause)
    transaction._outbox.forget()
    yield from transaction._begin()


def _rewound_too_late(transaction: Transaction, cause: Refusal) -> Generator[Act, Refusal | None, None]:
    """Results are sent between the abort and the rewind."""
    if cause.final or (yield from transaction._insist(Act.ABORT)) is not None:
        yield from _abort(transaction, cause)
    yield from transaction._begin()
    transaction._outbox.holding = False
    yield Act.PAUSE
    keys = list(transaction._engine.partitions)
    transaction._engine.revoke(keys)
    transaction._rewind(keys)
    transaction._outbox.forget()


def _fence_forgotten(transaction: Transaction, cause: Refusal) -> Generator[Act, Refusal | None, None]:
    """A member that was fenced goes on as if it had only to begin again."""
    if not cause.final:
        yield from _abort(transaction, cause)
        return
    keys = list(transaction._engine.partitions)
    transaction._engine.revoke(keys)
    transaction._rewind(keys)
    transaction._outbox.forget()


def _unknown_is_done(transaction: Transaction, act: Act) -> Steps:
    """A commit that timed out is taken for done."""
    refusal = yield from _insist(transaction, act)
    if act is Act.COMMIT and refusal is not None and refusal.again:
        return None
    return refusal


def _unknown_is_undone(transaction: Transaction, act: Act) -> Steps:
    """A transaction that cannot be aborted, because its commit is not over, is taken for aborted."""
    refusal = yield from _insist(transaction, act)
    return None if act is Act.ABORT else refusal


def _not_looked_again(transaction: Transaction) -> Steps:
    """Partitions that are given up between the offsets and the commit are not noticed."""
    steps = _commit(transaction)
    answer: Refusal | None = None
    try:
        while True:
            act = steps.send(answer)
            answer = yield act
            if act is Act.OFFSETS and answer is None:
                steps.close()
                if (answer := (yield from transaction._insist(Act.COMMIT))) is None:
                    transaction._outbox.renew()
                return answer
    except StopIteration as stop:
        refusal: Refusal | None = stop.value
        return refusal


def _not_held(outbox: Outbox, produce: Produce) -> None:
    """Results go into a transaction that is being ended."""
    holding, outbox.holding = outbox.holding, False
    _pump(outbox, produce)
    outbox.holding = holding


def _split(outbox: Outbox, produce: Produce) -> None:
    """The rest of a record's results waits for the next transaction."""
    if not outbox.holding:
        _pump(outbox, produce)


def _not_spoiled(outbox: Outbox) -> bool:
    del outbox
    return False


def _failure_forgotten(outbox: Outbox, group: Group, error: Undelivered | None, *, refused: bool = False) -> None:
    """A transaction of which a part was not delivered is committed."""
    _report(outbox, group, error, refused=refused)
    outbox.failure = None


def _torn_by_the_client(outbox: Outbox, group: Group, error: Undelivered | None, *, refused: bool = False) -> None:
    """The client refuses one of a record's results, and the others are committed."""
    group.several = group.several and not refused
    _report(outbox, group, error, refused=refused)


def _map_given_up(owner: Owner, position: Position, *, exact: bool = False) -> positions.Start:
    """A log whose end cannot be read for a moment costs the map, as if nothing were to be done exactly once."""
    del exact
    return positions._start(owner, position)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


BUGS: tuple[tuple[str, Any, str, Any], ...] = (
    ("plans a transaction's offsets before its results are acknowledged", Transaction, "_commit", _planned_too_early),
    ("does not rewind after an abort", Transaction, "_abort", _not_rewound),
    ("forgets that it was fenced", Transaction, "_abort", _fence_forgotten),
    ("takes an unknown commit for done", Transaction, "_insist", _unknown_is_done),
    ("takes an unknown commit for undone", Transaction, "_insist", _unknown_is_undone),
    ("commits what was revoked after its offsets were sent", Transaction, "_commit", _not_looked_again),
    ("lets results into a transaction that is being ended", Outbox, "pump", _not_held),
    ("splits a record's results between transactions", Outbox, "pump", _split),
    ("sends results between an abort and the rewind", Transaction, "_abort", _rewound_too_late),
    ("commits results of partitions that were given up", Outbox, "spoiled", property(_not_spoiled)),
    ("commits although a result was not delivered", Outbox, "report", _failure_forgotten),
    ("commits a part of what a client took", Outbox, "report", _torn_by_the_client),
    ("gives a map up because a look-up failed, exactly once", owner, "start_of", _map_given_up),
)
