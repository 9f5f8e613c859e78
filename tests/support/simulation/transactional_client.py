"""The producer's client of a simulated member: what librdkafka does with a transaction, as far as its caller can see it.

Its rules: one call at a time, and a call that timed out has to be made again before another; after an error that asks for
it, only an abort is taken; after a fatal one nothing is.
"""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from parallel_consumer_runtime.core import Act, Group, Refusal, Undelivered
from parallel_consumer_runtime.core.map_bounds import METADATA_SIZE_MAX
from parallel_consumer_runtime.handlers import Result
from parallel_consumer_runtime.kafka import positions
from tests.support.simulation.group import Entry
from tests.support.simulation.request import Planned
from tests.support.simulation.results_seen import Produced
from tests.support.simulation.transaction_coordinator import Answer

if TYPE_CHECKING:
    from tests.support.simulation.member import Member
    from tests.support.simulation.transactional_plan import TransactionalPlan

Effect = Callable[[], Answer | None]
TOPIC = "results"
TIMED_OUT = Refusal("timed out", again=True)
CONFLICT = Refusal("the call of before is not over", again=True)


class Client:
    """One process's producer; begins its life with its place's transactional id.

    Args:
        member: whose.
        plan: of the run's transactions.
    """

    def __init__(self, member: "Member", plan: "TransactionalPlan") -> None:
        self.member = member
        self.plan = plan
        self.coordinator = member.world.coordinator
        self.epoch = self.coordinator.begin_life(member.number)
        self.way: list[tuple[Produced, Group]] = []
        """Results that are on their way."""
        self.reports: deque[tuple[Group, Undelivered | None, bool]] = deque()
        """What became of them; the loop has not heard of it."""
        self.error: Refusal | None = None
        """Only an abort is taken any more, or nothing."""
        self._timed_out: Act | None = None
        """The call that has to be made again first."""
        self._late: int | None = None
        """The epoch of a commit that is on its way to the coordinator, and of which the caller was told that it timed out."""
        self._used = False
        """The coordinator knows of the transaction."""

    # Results

    def produce(self, topic: str, result: Result, group: Group) -> bool:
        """Take one result. Return False when there is no room for it."""
        assert topic == TOPIC
        world = self.member.world
        if len(self.way) + len(self.reports) >= self.plan.client_room:
            world.note("client's buffer full", self.member.name)
            return False
        refused = not world.calm and self.plan.refused_by_client and world.dice.chance(self.plan.refused_by_client)
        if refused or self.error is not None:
            world.note("result refused by the client", self.member.name)
            self.reports.append((group, Undelivered("the client says no", permanent=False), True))
            return True
        assert group.source is not None
        assert isinstance(result.value, bytes)
        assert isinstance(result.key, bytes | None)
        life, offset, number = result.value.split()
        # Of a batch of one key some may fail, and come after the others.
        shard = {"Key": result.key, "Partition": "all"}.get(world.plan.ordering) if world.plan.shape is None else None
        tenure = self.member.tenures[group.source].of(life)
        self.way.append((Produced(tenure, int(offset), shard, int(number)), group))
        return True

    def deliver(self) -> None:
        """Let one result reach the broker, any of those on their way, or not."""
        world = self.member.world
        index = world.dice.below(len(self.way))
        result, group = self.way.pop(index)
        error: Undelivered | None = None
        if self.error is None and not world.calm and world.dice.chance(self.plan.undelivered):
            self.error = Refusal("a result was not delivered")
        elif self.error is None:
            self._used = True
            self._answered(self.coordinator.append(self.member.number, self.epoch, result))
        if self.error is not None:
            error = Undelivered(self.error.words, permanent=False)
        self.reports.append((group, error, False))

    # Calls

    def call(self, act: Act, planned: Planned) -> Refusal | None:
        """Make one call and wait for its end. Return why it was refused."""
        if self.error is not None and (self.error.final or act is not Act.ABORT):
            self._timed_out = None
            return self.error
        if act is Act.BEGIN:
            return None
        if self._timed_out not in {None, act}:
            self.member.world.note("call during another refused", self.member.name)
            return CONFLICT
        again, self._timed_out = self._timed_out is not None, None
        if act is Act.OFFSETS:
            return self._call(act, lambda: self._send_offsets(planned), again=again)
        if self._used or again:
            return self._call(act, lambda: self._end(act), again=again)
        self._over()
        return None

    def die(self) -> None:
        """The process is gone; what it had sent may arrive yet."""
        world = self.member.world
        if self._late is not None and world.dice.chance(0.9):
            world.note("transaction committed late", self.member.name)
            self.coordinator.end(self.member, self._late, commit=True)
        for result, _ in self.way:
            if world.dice.chance(0.3):
                self.coordinator.append(self.member.number, self.epoch, result)

    def arrive(self) -> None:
        """What was told as timed out reaches the coordinator."""
        epoch, self._late = self._late, None
        if epoch is not None:
            self.member.world.note("transaction committed late", self.member.name)
            answer = self.coordinator.end(self.member, epoch, commit=True)
            if epoch == self.epoch:
                self._answered(answer)

    def _call(self, act: Act, effect: Effect, *, again: bool) -> Refusal | None:
        world, name = self.member.world, self.member.name
        fate = (
            "now" if world.calm else world.dice.source.choices(self.plan.calls, cum_weights=self.plan.call_weights)[0]
        )
        if again:
            self.arrive()  # one connection: before what is sent now
            if self.error is not None and act is not Act.ABORT:
                return self.error
        late = act is Act.COMMIT and (fate == "apply late" or (fate == "time out" and world.dice.chance(0.6)))
        if late or fate == "time out":
            world.note("call timed out", (name, act.name))
            self._late = self.epoch if late else None
            self._timed_out = None if act is Act.OFFSETS else act
            return TIMED_OUT
        if fate == "refuse" and act is not Act.ABORT:
            world.note("call refused: abort", (name, act.name))
            self.error = Refusal("the coordinator says no")
            return self.error
        if (refusal := self._answered(effect())) is not None:
            return refusal
        if fate == "apply, time out":
            world.note("call applied, told as timed out", (name, act.name))
            self._timed_out = None if act is Act.OFFSETS else act
            return TIMED_OUT
        if act is not Act.OFFSETS:
            self._over()
        return None

    def _send_offsets(self, planned: Planned) -> Answer | None:
        member = self.member
        entries = [
            Entry(positions.to_commit(commit, METADATA_SIZE_MAX), commit, tenure, done)
            for commit, tenure, done in planned
        ]
        answer = self.coordinator.add_offsets(member, self.epoch, member.generation, entries)
        self._used = self._used or answer is None
        return answer

    def _end(self, act: Act) -> Answer | None:
        if act is Act.ABORT and (epoch := self.coordinator.recover(self.member.number, self.epoch)) is not None:
            self.member.world.note("transaction that took too long begun anew", self.member.name)
            self.epoch = epoch
            return None
        return self.coordinator.end(self.member, self.epoch, commit=act is Act.COMMIT)

    def _answered(self, answer: Answer | None) -> Refusal | None:
        if answer is None:
            return None
        self.error = Refusal(answer.words, final=answer.final)
        return self.error

    def _over(self) -> None:
        """The transaction is over."""
        self._used, self.error = False, None
