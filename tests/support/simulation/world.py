"""One run: everything there is, the steps of the safety phase, and the rounds of the liveness phase."""

from collections.abc import Callable
from hashlib import blake2b

from parallel_consumer_runtime.core import Gates, Ledger, PartitionKey, Rates
from parallel_consumer_runtime.handlers import Record
from parallel_consumer_runtime.kafka.librdkafka import Position
from parallel_consumer_runtime.kafka.positions import Start
from tests.support.simulation.commits import deliver
from tests.support.simulation.dice import Dice
from tests.support.simulation.failure import Anomaly, Broken
from tests.support.simulation.faults import Faults
from tests.support.simulation.group import Group
from tests.support.simulation.log import Log
from tests.support.simulation.member import Member
from tests.support.simulation.plan import STEPS, Plan
from tests.support.simulation.recovery import Recovery
from tests.support.simulation.sometimes import no_counts
from tests.support.simulation.transaction_coordinator import Coordinator
from tests.support.simulation.transaction_faults import TransactionFaults
from tests.support.simulation.transactional_plan import drawn


class World:
    """One run of one seed.

    Args:
        seed: decides everything.
        steps: of the safety phase.
    """

    def __init__(self, seed: int, steps: int = STEPS) -> None:
        self.dice = Dice(seed)
        self.transactional = drawn(seed)
        """None: commits of offsets alone."""
        self.plan = Plan(self.dice, steps, transactional=self.transactional is not None)
        self.now = 0.0
        self.calm = False
        """The liveness phase: no faults any more."""
        self.trace: list[str] = []
        """What happened, line by line; its hash is the run's fingerprint."""
        self.counts = no_counts()
        self.lives = 0
        self.gated = False
        """Gates were set, somewhere."""
        self.rounds = 0
        self.logs = {key: Log(key) for key in self.plan.partitions}
        self.deleted: dict[PartitionKey, None] = {}
        """Topics that are being deleted: their partitions are given to nobody."""
        self.group = Group(self)
        self.coordinator = Coordinator(self)
        self.members: list[Member] = []
        self._faults = Faults(self)
        self._steps: dict[str, Callable[[], None]] = {
            "owner": self._owner,
            "loop": self._loop,
            "handle": self._handle,
            "produce": self._produce,
            "deliver": self._deliver,
            "network": self._network,
            "commit": self._commit,
            "flow": self._flow,
            "coordinate": self.group.coordinate,
            "clock": self._clock,
            "transact": self._transact,
            **self._faults.by_name,
            **TransactionFaults(self).by_name,
        }

    def run(self) -> str:
        """Run both phases. Return the trace's hash.

        Raises:
            Broken: a guarantee does not hold.
        """
        try:
            for _ in range(self.plan.members):
                self.join()
            for _ in range(4):
                self._produce()
            if self.transactional is not None:
                self.group.coordinate()
            steps = self._steps
            for kind in self.plan.steps:
                self.now += 0.02
                steps[kind]()
            Recovery(self).run()
        except Broken:
            raise
        except Exception as error:
            raise Broken(Anomaly.CRASH, repr(error)) from error
        return self.hash()

    def hash(self) -> str:
        """Return the trace's fingerprint so far."""
        return blake2b("\n".join(self.trace).encode(), digest_size=8).hexdigest()

    def note(self, what: str, about: object) -> None:
        """Count an event or a state, and trace it."""
        self.counts[what] += 1
        self.trace.append(f"{what}: {about}")

    # What the parts ask for

    def any_log(self) -> Log:
        """Return one partition's log."""
        return self.logs[self.dice.pick(self.plan.partitions)]

    def outcome(self) -> str:
        """Return how a call ends."""
        return self.dice.source.choices(self.plan.outcomes, cum_weights=self.plan.outcome_weights)[0]

    def fate(self) -> str:
        """Return what becomes of a commit."""
        return self.dice.source.choices(self.plan.fates, cum_weights=self.plan.fate_weights)[0]

    def gates(self) -> Gates:
        """Return gates of the plan's kind."""
        self.gated = True
        pick = self.dice.pick
        rates = Rates(pick((-1.0, -1.0, 5.0, 0.0)), pick((-1.0, 4.0, 0.0)), pick((-1.0, 2.0)))
        ignored = () if self.plan.ignored is None else (self.plan.ignored,)
        return Gates(rates, ignored, _schedule if self.plan.scheduled else None)

    def committed(self, key: PartitionKey) -> Position:
        """Return what the broker tells of a partition's commit."""
        stored = self.group.stored.get(key)
        return Position(*key, -1001, "") if stored is None else Position(*key, stored.offset, stored.metadata)

    def take_over(self, start: Start, log: Log) -> None:
        """Excuse what a commit of a log that is gone takes from the log that followed: no client can know."""
        stored = self.group.stored.get(start.key)
        if stored is not None and stored.log is not log and stored.offset <= log.end:
            log.done.update(range(max(stored.offset, start.ledger.highest + 1)))

    def watch_delivery(self, ledger: Ledger, records: list[Record]) -> None:
        """Count what a delivery is about to do to a map."""
        base, expected, delivered = ledger._base, ledger._expected, ledger.delivered  # pyright: ignore[reportPrivateUsage]
        if delivered < 0 and base is not None and records[0].offset < base:
            self.note("map of a log that began anew forgotten", base)
        elif expected and expected[-1] < records[0].offset:
            self.note("record of the map gone from the log", expected[-1])

    # Processes

    def join(self) -> None:
        """Start one more process."""
        taken = {*self.group.members, *(member.number for member in self.members)}
        member = Member(self, next(number for number in range(100) if number not in taken))
        self.note("member joined", member.name)
        self.members.append(member)
        self.group.join(member)

    def drop(self, member: Member) -> None:
        """A process is gone, with all that it knew; what it had sent may arrive yet."""
        for request in member.requests:
            if not request.applied and self.dice.chance(0.5):
                self.group.apply(member, request.generation, request.entries)
        if member.transactions is not None:
            member.transactions.client.die()
        member.ended = True
        self.members.remove(member)

    def end(self, member: Member) -> None:
        """A process ended by itself; a dynamic member leaves the group, a static one does not."""
        if member.transactions is not None:
            member.transactions.client.die()
        member.ended = True
        self.members.remove(member)
        if self.group.members.get(member.number) is member and self.dice.chance(0.5):
            self.group.remove(member.number)

    def expire(self, number: int) -> None:
        """The coordinator gives a member up; if it lives, it learns so when it polls."""
        member = self.group.members[number]
        self.note("session expired", member.name)
        member.mail.clear()
        member.mail.append(("lost", [], 0))
        self.group.remove(number)

    # Topics

    def delete(self, key: PartitionKey) -> None:
        """Delete a partition's topic; it is made again once nobody reads it."""
        self.deleted[key] = None
        self.group.wanted = True

    def make_again(self) -> None:
        """Make deleted topics again that nobody reads any more."""
        for key in list(self.deleted):
            if not any(key in member.positions for member in self.members):
                del self.deleted[key]
                self.note("topic deleted and made again", key)
                self.group.wanted = True
                self._renew(key, 0.15)

    def replace(self, key: PartitionKey) -> None:
        """Delete a partition's topic and make it again before anybody notices. The broker forgets its commits."""
        if key not in self.deleted:
            self.note("topic made again at once", key)
            self._renew(key, 1.0)

    def _renew(self, key: PartitionKey, forgotten: float) -> None:
        """Begin a log anew, with some records."""
        log = self.logs[key] = Log(key, int(self.logs[key].life) + 1)
        before = self.group.stored.get(key)
        if self.dice.chance(forgotten):
            self.group.stored.pop(key, None)
        for _ in range(self.dice.below(2 + (0 if before is None else before.offset * self.dice.pick((1, 1, 2))))):
            self._append(log)

    # Steps

    def _append(self, log: Log) -> None:
        plan = self.plan
        index = self.dice.below(len(plan.keys))
        key = plan.keys[index]
        if not plan.spread and key is not None:
            log = self.logs[plan.partitions[index % len(plan.partitions)]]
        elif plan.spread and len(plan.partitions) > 1:
            self.counts["same key in two partitions"] += 1
        if (key is not None and key == plan.ignored) or log.end < log.mistaken:
            log.done.add(log.end)
        self.counts["record produced"] += 1
        self.trace.append(f"P {log.key} {log.end} {key!r}")
        log.append(key)
        if self.dice.chance(plan.holes):
            log.slots += [None] * 20

    def _produce(self) -> None:
        for _ in range(1 + self.dice.below(4)):
            self._append(self.any_log())

    def _owner(self) -> None:
        if (member := self._one()) is not None:
            member.owner.turn()

    def _loop(self) -> None:
        if (member := self._one_that_runs()) is not None:
            if self.dice.chance(0.3):  # a tick that was due before what the owner thread tells
                member.loop.flow()
                member.loop.commit()
            member.loop.step(1 + self.dice.below(4))

    def _handle(self) -> None:
        if (member := self._one_that_runs()) is not None:
            for _ in range(min(len(member.running), 1 + self.dice.below(4))):
                member.executor.end_one()
            if self.dice.chance(0.7):
                member.executor.pull()

    def _deliver(self) -> None:
        if (member := self._one_that_runs()) is not None:
            for _ in range(min(len(member.producing), 1 + self.dice.below(4))):
                member.executor.acknowledge_one()
            if member.transactions is not None:
                member.transactions.hear()

    def _network(self) -> None:
        if not self.members:
            return
        member = self.dice.pick(self.members)
        if member.requests:
            deliver(member)
        if member.transactions is not None:
            member.transactions.client.arrive()

    def _transact(self) -> None:
        busy = [m for m in self.members if m.transactions is not None and m.transactions.busy and not m.frozen]
        if not busy:
            self._owner()
            self._loop()
            return
        member = self.dice.pick(busy)
        assert member.transactions is not None
        member.transactions.turn()
        if self.now >= member.blocked_until and self.dice.chance(0.6):
            member.transactions.hear()
            member.loop.step(1 + self.dice.below(4))

    def _commit(self) -> None:
        if (member := self._one_that_runs()) is not None:
            member.loop.commit()

    def _flow(self) -> None:
        if (member := self._one_that_runs()) is not None:
            member.loop.flow()

    def _clock(self) -> None:
        self.now += self.dice.pick((0.1, 0.5, 2.0))

    def _one(self) -> Member | None:
        if not self.members:
            return None
        member = self.dice.pick(self.members)
        return None if member.frozen else member

    def _one_that_runs(self) -> Member | None:
        member = self._one()
        return None if member is None or self.now < member.blocked_until else member


def _schedule(record: Record) -> float:
    return (record.offset % 5) * 1.5
