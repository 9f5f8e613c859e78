"""Exactly once in a simulated member: drives the real `Transaction` and the real `Outbox`, call by call.

`kafka/transactions.py` restated, without its thread: what is asked of the client is done at one time, and heard of by the
loop at another, and everything else may happen in between.
"""

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from parallel_consumer_runtime.core import Act, Cut, End, Outbox, PartitionKey, Refusal, Task, Transaction, Undelivered
from parallel_consumer_runtime.errors import TemporaryError
from parallel_consumer_runtime.handlers import Result
from tests.support.simulation.checking import name
from tests.support.simulation.request import Planned
from tests.support.simulation.transactional_client import TOPIC, Client

if TYPE_CHECKING:
    from tests.support.simulation.member import Member
    from tests.support.simulation.transactional_plan import TransactionalPlan


class Transactions:
    """What a member has beside an engine when results and offsets are committed together."""

    def __init__(self, member: "Member", plan: "TransactionalPlan") -> None:
        world = member.world
        self.member = member
        self.plan = plan
        self.outbox = Outbox(atomic=True)
        self.client = Client(member, plan)
        self.transaction = Transaction(
            member.engine, self.outbox, self._rewind, lambda: world.now, retried_for_s=plan.retried_for_s
        )
        self._waiting: deque[Callable[[End], None]] = deque()
        """Cuts that wait for their turn: who is told of their end."""
        self._told: Callable[[End], None] | None = None
        self._cut: Cut | None = None
        self._act: Act | None = None
        """What is asked for; None when nothing is, or the client has done it."""
        self._asked: Act | None = None
        """What was asked for last."""
        self._planned: Planned = []

    @property
    def busy(self) -> bool:
        """Whether anything is on its way."""
        return bool(self._cut is not None or self._waiting or not self.outbox.idle or self.client.reports)

    @property
    def ending(self) -> bool:
        """Whether a transaction is being ended."""
        return self._cut is not None

    @property
    def sends_offsets(self) -> bool:
        """Whether the client is about to send offsets."""
        return self._act is Act.OFFSETS

    # What the loop asks for

    def send(self, task: Task) -> None:
        """A handler ended with results: `Outcomes._send`."""
        member, dice = self.member, self.member.world.dice
        if not task.partition.live:
            member.world.note("result of a partition that was given up not sent", name(task))
            member.executor.left(task)
            return
        member.engine.await_acknowledgement()
        member.producing.append(task)
        count, record = 1 + dice.below(self.plan.results_max), task.record
        if self.outbox.holding:
            member.world.note("result held by a cut", name(task))
        results = [
            Result(record.key, b"%b %d %d" % (record.value or b"", record.offset, n), (), None) for n in range(count)
        ]
        self.outbox.add(TOPIC, results, partial(self._delivered, task, count), task.partition)
        self._pump()

    def request(self, told: Callable[[End], None]) -> None:
        """Cut once it is the turn of this one."""
        self._waiting.append(told)
        if self._cut is None:
            self._next()

    def lost(self) -> None:
        """Partitions are gone: `Member.on_revoked`."""
        if self.outbox.spoiled:
            self.member.world.note("transaction spoiled by a lost partition", self.member.name)
            self.request(lambda _: None)

    # What happens meanwhile

    def turn(self) -> None:
        """Let the client do what it was asked for. The loop hears of it after all that it was told before."""
        world = self.member.world
        if not world.calm and world.dice.chance(self.plan.slowness):
            return
        if self._act is not None and self._act is not Act.FLUSH:
            act, self._act = self._act, None
            answer = None if act is Act.PAUSE else self.client.call(act, self._planned)
            self.member.inbox.append((self._advance, answer))
        elif self.client.way:
            self.client.deliver()

    def deliver(self) -> None:
        """Let one result reach the broker."""
        if self.client.way:
            self.client.deliver()

    def hear(self) -> None:
        """Let the loop hear what became of results: `ResultProducer._report`."""
        reports = self.client.reports
        for _ in range(len(reports)):
            group, error, refused = reports.popleft()
            self.outbox.report(group, error, refused=refused)
        self._pump()
        if self._act is Act.FLUSH and self.outbox.idle:
            self._advance(None)

    # Cuts

    def _next(self) -> None:
        if self._waiting:
            self._told = self._waiting.popleft()
            self._cut, self._planned = self.transaction.cut(), []
            waiting = self.outbox._waiting  # pyright: ignore[reportPrivateUsage]
            if waiting and waiting[0][2].begun:
                self.member.world.note("group split when a cut began", self.member.name)
            self._advance(None)

    def _advance(self, answer: Refusal | None) -> None:
        member, world = self.member, self.member.world
        assert self._cut is not None
        assert self._told is not None
        self._act = None
        try:
            act = self._cut.send(answer)
            if act is Act.BEGIN:  # nothing is asked of a broker
                act = self._cut.send(self.client.call(Act.BEGIN, []))
        except StopIteration as stop:
            end: End = stop.value
            if end is not End.NOTHING:
                world.note(f"transaction {end.name.lower()}", (member.name, self.transaction.cause))
            self._cut, told = None, self._told
            self._pump()
            told(end)
            self._next()
        except TemporaryError as error:
            self._cut = None
            world.note("process ended by its transaction", (member.name, error))
            world.end(member)
        else:
            if act is Act.ABORT and self._asked is Act.OFFSETS and answer is None:
                world.note("transaction spoiled by a lost partition", member.name)
            self._act = self._asked = act
            if act is Act.OFFSETS and not self._planned:  # else it is asked for again
                self._planned = member.planned(self.transaction.planned)

    def _rewind(self, keys: list[PartitionKey]) -> None:
        member = self.member
        member.world.note("partitions rewound", (member.name, len(keys)))
        member.commands.append((member.owner.rewind, keys))

    # Results

    def _pump(self) -> None:
        self.outbox.pump(self.client.produce)

    def _delivered(self, task: Task, count: int, error: Undelivered | None) -> None:
        """`Outcomes._delivered`."""
        member, world = self.member, self.member.world
        member.producing.remove(task)
        if error is None:
            world.note("results acknowledged", name(task))
            world.coordinator.seen.returned(member.tenure_of(task), task.record.offset, count)
            member.executor.acknowledged(task)
        else:
            world.note("results not acknowledged", (name(task), error.words))
            member.executor.undelivered(task)
