"""The liveness phase: no faults any more, and everything must become complete and committed, and every engine empty."""

from typing import TYPE_CHECKING

from parallel_consumer_runtime.core import Gates, Rates
from tests.support.simulation.checking import NothingLeaks
from tests.support.simulation.commits import deliver
from tests.support.simulation.failure import Anomaly, Broken

if TYPE_CHECKING:
    from tests.support.simulation.member import Member
    from tests.support.simulation.world import World

ROUNDS_MAX = 300
"""Twice what the slowest of many thousand runs needs: one task of one partition at a time, and no more than one buffered."""
LEFTOVER_ROUNDS = 20
"""After everything became complete and committed: engines that handle a record again are done by then."""
ROUND_S = 0.3
SETTLED_MAX = 30
SHOWN_MAX = 10


class Recovery:
    """Rounds in which every part of every process has its turn."""

    def __init__(self, world: "World") -> None:
        self.world = world

    def run(self) -> None:
        """End the faults and go round until all is done.

        Raises:
            Broken: stuck, unseen records, or a leak.
        """
        world = self.world
        world.calm = True
        world.trace.append("calm")
        for member in world.members:
            member.frozen = False
            member.engine.halted = member.stopping
            member.engine.set_gates(Gates(Rates()))
            member.running += member.slow
            member.slow = []
        finished = 0
        for world.rounds in range(ROUNDS_MAX):
            if self._finished():
                finished += 1
                left = {member.name: left for member in world.members if (left := NothingLeaks.idle(member))}
                if not left:
                    world.coordinator.seen.judge()
                    return
                if finished == LEFTOVER_ROUNDS:
                    raise Broken(Anomaly.LEAK, str(left))
            self._round()
        self._explain()

    def _round(self) -> None:
        world = self.world
        world.now += ROUND_S
        for number, member in list(world.group.members.items()):
            if member.ended:
                world.expire(number)
        alive = [(member.number, member.transactions.client.epoch) for member in world.members if member.transactions]
        for number in world.coordinator.open:
            # A newer life may have been fenced by one before it, which knows of no transaction.
            if (number, world.coordinator.ids[number].epoch) not in alive:
                world.coordinator.time_out(number)
        if all(member.stopping for member in world.members):
            world.join()
        world.group.coordinate()
        for member in list(world.members):
            self._turn(member)

    def _turn(self, member: "Member") -> None:
        while member.requests:
            deliver(member)
        member.owner.turn()
        if member.ended:
            return
        member.loop.step(len(member.inbox))
        self._settle(member)
        if self.world.dice.chance(0.5):
            member.loop.commit()
        for _ in range(1 + self.world.dice.below(8)):
            if not (member.running or member.producing):
                break
            for _ in range(len(member.running)):
                member.executor.end_one()
            for _ in range(len(member.producing)):
                member.executor.acknowledge_one()
            member.executor.pull()
        member.loop.flow()
        member.loop.commit()
        self._settle(member)

    @staticmethod
    def _settle(member: "Member") -> None:
        """Let transactions go on as far as they can."""
        if (transactions := member.transactions) is None:
            return
        for _ in range(SETTLED_MAX):
            if member.ended or not transactions.busy:
                break
            for _ in range(len(transactions.client.way)):
                transactions.deliver()
            transactions.turn()
            transactions.hear()
            member.loop.step(len(member.inbox))

    def _finished(self) -> bool:
        world, group = self.world, self.world.group
        if group.wanted or group.busy or world.deleted:
            return False
        if any(member.stopping or member.busy for member in world.members) or world.coordinator.open:
            return False
        for key, log in world.logs.items():
            stored = group.stored.get(key)
            if log.undone() or (0 if stored is None else stored.offset) < log.needed:
                return False
        return True

    def _explain(self) -> None:
        world = self.world
        undone = {str(log.key): log.undone()[:SHOWN_MAX] for log in world.logs.values() if log.undone()}
        left = {member.name: left for member in world.members if (left := NothingLeaks.idle(member))}
        if undone and not left:
            raise Broken(Anomaly.UNSEEN, f"nothing is left to do, and never done were {undone}")
        stored = {str(key): stored.offset for key, stored in world.group.stored.items()}
        raise Broken(Anomaly.STUCK, f"after {ROUNDS_MAX} rounds: not done {undone}, committed {stored}, left {left}")
