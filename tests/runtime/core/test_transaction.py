"""How a transaction ends: what it admits, what an abort undoes, and when the process must end instead."""

from collections.abc import Callable

import pytest

from parallel_consumer_runtime.core import (
    Act,
    Bounds,
    Engine,
    Group,
    Ledger,
    Outbox,
    PartitionKey,
    Refusal,
    Task,
    Transaction,
    Undelivered,
)
from parallel_consumer_runtime.core.transaction import Cut, End
from parallel_consumer_runtime.errors import TemporaryError
from parallel_consumer_runtime.handlers import Record, Result

P0, P1 = PartitionKey("orders", 0), PartitionKey("orders", 1)
TIMED_OUT = Refusal("timed out", again=True)
FENCED = Refusal("fenced", final=True)
REFUSED = Refusal("the coordinator says no")
LOST = Undelivered("not delivered", permanent=False)
RETRIED_FOR_S = 3.0


class Bench:
    """An engine with two partitions of four records each, an outbox, and a client that keeps what it is given."""

    def __init__(self) -> None:
        self.now = 0.0
        self.engine = Engine("Unordered", Bounds(100, 100, 10_000), 10)
        for key in (P0, P1):
            self.engine.assign(key, Ledger(0))
            self.engine.offer(key, [Record(*key, offset, b"k", b"v", -1, ()) for offset in range(4)])
        self.tasks: dict[tuple[int, int], Task] = {}
        while (task := self.engine.take(0.0)) is not None:
            self.tasks[task.record.partition, task.record.offset] = task
        self.outbox = Outbox(atomic=True)
        self.rewound: list[list[PartitionKey]] = []
        self.transaction = Transaction(
            self.engine, self.outbox, self.rewound.append, lambda: self.now, retried_for_s=RETRIED_FOR_S
        )
        self.room = 100
        self.with_client: list[tuple[bytes, Group]] = []
        self.told: list[tuple[int, str | None]] = []

    def send(self, partition: int, offset: int, count: int = 1) -> None:
        """A handler ended and returned so many results; they go out as soon as they may."""
        task = self.tasks[partition, offset]

        def delivered(error: Undelivered | None) -> None:
            self.told.append((offset, None if error is None else error.words))
            if error is None:
                self.engine.acknowledge(task)
            else:
                self.engine.retry(task, 0.0, produced=True)

        self.engine.await_acknowledgement()
        results = [Result(b"k", b"%d.%d" % (offset, number), (), None) for number in range(count)]
        self.outbox.add("results", results, delivered, task.partition)
        self.pump()

    def pump(self) -> None:
        """Give the client what it has room for."""
        self.outbox.pump(self._produce)

    def acknowledge(self, error: Undelivered | None = None) -> list[bytes]:
        """Report all that the client has. Return it."""
        sent, self.with_client = self.with_client, []
        for _, group in sent:
            self.outbox.report(group, error)
        self.pump()
        return [value for value, _ in sent]

    def _produce(self, topic: str, result: Result, group: Group) -> bool:
        assert topic == "results"
        assert isinstance(result.value, bytes)
        if len(self.with_client) >= self.room:
            return False
        self.with_client.append((result.value, group))
        return True


def drive(cut: Cut, *answers: Refusal | Callable[[], object] | None) -> tuple[list[Act], End]:
    """Give answers to what a cut asks for; a function is called, and nothing was refused. Return what it asked, and its end."""
    asked: list[Act] = []
    refusal: Refusal | None = None
    try:
        for answer in (*answers, None):
            asked.append(cut.send(refusal))
            if callable(answer):
                answer()
                refusal = None
            else:
                refusal = answer
        cut.send(refusal)
    except StopIteration as stop:
        return asked, stop.value
    pytest.fail(f"it asked for more than {asked}")


def test_results_and_offsets_are_committed_together() -> None:
    """What was acknowledged and completed goes into one transaction, and the next is begun."""
    bench = Bench()
    bench.send(0, 0)
    cut = bench.transaction.cut()
    asked, end = drive(cut, bench.acknowledge, None, None)
    assert asked == [Act.FLUSH, Act.OFFSETS, Act.COMMIT, Act.BEGIN]
    assert end is End.COMMITTED
    assert [(commit.source.key, commit.offset) for commit in bench.transaction.planned if commit.offset] == [(P0, 1)]
    assert bench.engine.partitions[P0].committed == 1
    assert bench.told == [(0, None)]


def test_nothing_to_commit_asks_nothing() -> None:
    """An idle member asks nothing of its brokers."""
    bench = Bench()
    assert drive(bench.transaction.cut()) == ([], End.NOTHING)
    assert not bench.outbox.holding


def test_what_is_sent_during_a_cut_waits_for_the_next_transaction() -> None:
    """A result that comes after the cut began is not in its transaction, nor is its record's offset."""
    bench = Bench()
    bench.send(0, 0)

    def late() -> None:
        bench.send(0, 1)
        assert bench.acknowledge() == [b"0.0"]

    drive(bench.transaction.cut(), late, None, None)
    assert [commit.offset for commit in bench.transaction.planned if commit.source.key == P0] == [1]
    bench.pump()
    assert bench.acknowledge() == [b"1.0"]


def test_a_group_of_which_a_part_was_sent_is_sent_to_its_end() -> None:
    """The client's buffer was full in the middle of a record's results: they are in one transaction all the same."""
    bench = Bench()
    bench.room = 1
    bench.send(0, 0, count=3)
    bench.send(0, 1)
    sent: list[bytes] = []

    def flush() -> None:
        while not bench.outbox.idle:
            sent.extend(bench.acknowledge())

    asked, end = drive(bench.transaction.cut(), flush, None, None)
    assert (asked[0], end) == (Act.FLUSH, End.COMMITTED)
    assert sent == [b"0.0", b"0.1", b"0.2"]
    assert bench.told == [(0, None)]


def test_nothing_sent_between_an_abort_and_the_rewind_reaches_the_next_transaction() -> None:
    """Its record is handled again, and its result would be there twice."""
    bench = Bench()
    bench.send(0, 0)
    bench.acknowledge()

    def meanwhile() -> None:
        bench.send(0, 1)
        bench.send(1, 0)

    asked, end = drive(bench.transaction.cut(), REFUSED, meanwhile, None)
    assert asked == [Act.OFFSETS, Act.ABORT, Act.BEGIN]
    assert end is End.ABORTED
    assert bench.transaction.cause == "the coordinator says no"
    assert bench.rewound == [[P0, P1]]
    assert not bench.engine.partitions
    bench.pump()
    assert bench.with_client == []
    assert bench.told == [(0, None), (1, "the transaction was aborted"), (0, "the transaction was aborted")]


def test_what_was_not_delivered_does_not_count_against_the_next_transaction() -> None:
    """It aborts its own, and that is all."""
    bench = Bench()
    bench.send(0, 0)
    asked, end = drive(bench.transaction.cut(), lambda: bench.acknowledge(LOST), lambda: None, lambda: None)
    assert asked == [Act.FLUSH, Act.ABORT, Act.BEGIN]
    assert end is End.ABORTED
    assert bench.outbox.failure is None
    assert drive(bench.transaction.cut()) == ([], End.NOTHING)


def test_results_of_a_partition_that_was_given_up_abort_the_transaction() -> None:
    """Its next owner handles the record again: its result must not be seen."""
    bench = Bench()
    bench.send(0, 0)
    bench.acknowledge()
    bench.send(1, 0)
    bench.acknowledge()
    assert not bench.outbox.spoiled
    bench.engine.revoke([P0])
    assert bench.outbox.spoiled
    asked, end = drive(bench.transaction.cut(), None, None)
    assert (asked, end) == ([Act.ABORT, Act.BEGIN], End.ABORTED)
    assert bench.rewound == [[P1]]
    assert not bench.outbox.spoiled


def test_a_partition_that_is_given_up_before_the_commit_aborts_it() -> None:
    """Offsets that were sent as a member that joined again meanwhile may have passed the coordinator's fence."""
    bench = Bench()
    bench.engine.complete(bench.tasks[0, 0])
    asked, end = drive(bench.transaction.cut(), lambda: bench.engine.revoke([P0]), None, None)
    assert (asked, end) == ([Act.OFFSETS, Act.ABORT, Act.BEGIN], End.ABORTED)


def test_what_waits_is_left_out_once_its_partition_is_given_up() -> None:
    """It never reaches a transaction, and spoils none."""
    bench = Bench()
    bench.outbox.holding = True
    bench.send(0, 0, count=2)
    bench.send(1, 0)
    bench.engine.revoke([P0])
    bench.outbox.holding = False
    bench.pump()
    assert bench.acknowledge() == [b"0.0"]
    assert bench.told == [(0, "its partition was given up"), (0, None)]
    assert not bench.outbox.spoiled


def test_a_refusal_by_the_client_itself_aborts_only_what_it_tears_apart() -> None:
    """A single result that the client does not take is in no transaction; the others of its group would be."""
    bench = Bench()
    bench.send(0, 0)
    ((_, alone),) = bench.with_client
    bench.with_client.clear()
    bench.outbox.report(alone, Undelivered("too large", permanent=True), refused=True)
    assert bench.outbox.failure is None
    bench.send(0, 1, count=2)
    (_, group), _ = bench.with_client
    bench.with_client.clear()
    bench.outbox.report(group, Undelivered("too large", permanent=True), refused=True)
    bench.outbox.report(group, None)
    assert bench.told == [(0, "too large"), (1, "too large")]
    assert drive(bench.transaction.cut(), None, None) == ([Act.ABORT, Act.BEGIN], End.ABORTED)


def test_what_may_succeed_is_tried_again() -> None:
    """Offsets and commit: a coordinator that moves costs a moment, not a transaction."""
    bench = Bench()
    bench.engine.complete(bench.tasks[0, 0])
    asked, end = drive(bench.transaction.cut(), TIMED_OUT, None, None, TIMED_OUT, None, None)
    assert asked == [Act.OFFSETS, Act.PAUSE, Act.OFFSETS, Act.COMMIT, Act.PAUSE, Act.COMMIT, Act.BEGIN]
    assert end is End.COMMITTED


def test_a_commit_of_which_nobody_knows_ends_the_process() -> None:
    """It is neither taken for done nor done again: the client allows no abort then, and the next life asks the coordinator."""
    bench = Bench()
    bench.engine.complete(bench.tasks[0, 0])
    cut = bench.transaction.cut()
    assert next(cut) is Act.OFFSETS
    assert cut.send(None) is Act.COMMIT
    bench.now = RETRIED_FOR_S
    assert cut.send(TIMED_OUT) is Act.ABORT
    bench.now *= 2
    with pytest.raises(TemporaryError, match="could not be aborted: timed out"):
        cut.send(TIMED_OUT)
    assert bench.rewound == []
    assert bench.engine.partitions[P0].committed == 0


def test_a_fenced_member_ends() -> None:
    """Another life of it has begun: it aborts nothing, rewinds nothing and begins nothing."""
    bench = Bench()
    bench.engine.complete(bench.tasks[0, 0])
    cut = bench.transaction.cut()
    next(cut)
    with pytest.raises(TemporaryError, match="ended: fenced"):
        cut.send(FENCED)
    assert bench.rewound == []
    assert not bench.outbox.holding


def test_a_transaction_that_cannot_be_begun_ends_the_process() -> None:
    """Without one nothing could be sent."""
    bench = Bench()
    bench.engine.complete(bench.tasks[0, 0])
    cut = bench.transaction.cut()
    next(cut)
    cut.send(None)
    cut.send(None)
    with pytest.raises(TemporaryError, match="could not be begun: fenced"):
        cut.send(FENCED)
    assert bench.engine.partitions[P0].committed == 1


def test_without_transactions_nothing_is_remembered_of_who_sent() -> None:
    """An outbox that is not atomic keeps no assignment alive, and sends what a revoked one left."""
    bench = Bench()
    bench.outbox = Outbox()
    bench.engine.revoke([P0])
    bench.send(0, 0)
    assert bench.acknowledge() == [b"0.0"]
    assert bench.outbox.sources == set()
    assert bench.outbox.acknowledged == 1


def test_a_partition_that_goes_after_a_commit_does_not_spoil_the_next() -> None:
    """What it produced is committed: the transaction that is open now holds nothing of it."""
    bench = Bench()
    bench.send(0, 0)
    assert drive(bench.transaction.cut(), bench.acknowledge, None, None)[1] is End.COMMITTED
    bench.engine.revoke([P0])
    bench.send(1, 0)
    assert drive(bench.transaction.cut(), bench.acknowledge, None, None)[1] is End.COMMITTED
    assert bench.outbox.acknowledged == 2


def test_an_abort_names_its_cause() -> None:
    """What the log says is what was not delivered."""
    bench = Bench()
    assert bench.transaction.cause == ""
    bench.send(0, 0)
    _, end = drive(bench.transaction.cut(), lambda: bench.acknowledge(LOST), None)
    assert (end, bench.transaction.cause) == (End.ABORTED, LOST.words)
