"""What happens around transactions in the middle of them, by the name under which a plan draws it."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.support.simulation.member import Member

if TYPE_CHECKING:
    from tests.support.simulation.world import World


class TransactionFaults:
    """The coordinator's and the members' events; a kind that cannot happen now does nothing."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self.by_name: dict[str, Callable[[], None]] = {
            "time out": self._time_out,
            "strike": self._strike,
            "lose": self._lose,
        }

    def _time_out(self) -> None:
        """A transaction is open for too long: its member is slow, frozen or dead."""
        coordinator = self.world.coordinator
        if coordinator.open:
            coordinator.time_out(self.world.dice.pick(coordinator.open))

    def _strike(self) -> None:
        """A member is hit while it ends a transaction."""
        world = self.world
        ending = [member for member in world.members if member.transactions is not None and member.transactions.ending]
        if not ending:
            return
        holding = [member for member in ending if world.coordinator.ids[member.number].entries]
        member = world.dice.pick(holding if holding and world.dice.chance(0.85) else ending)
        how = world.dice.below(4)
        if how == 0:
            world.note("member killed", member.name)
            world.drop(member)
            if world.group.members.get(member.number) is member:
                world.expire(member.number)
        elif how == 1:
            world.note("member restarted in its place", member.name)
            member.frozen = world.dice.chance(0.5)
            if not member.frozen:
                world.drop(member)
            successor = Member(world, member.number)
            world.members.append(successor)
            world.group.join(successor)
        elif world.group.members.get(member.number) is member:
            world.expire(member.number)
            self._join_again(member)

    def _lose(self) -> None:
        """A member's session ends just before it sends the offsets of its transaction."""
        world = self.world
        for member in world.members:
            transactions = member.transactions
            if (
                transactions is not None
                and transactions.sends_offsets
                and world.group.members.get(member.number) is member
            ):
                world.expire(member.number)
                if world.dice.chance(0.5):
                    self._join_again(member)
                if not member.ended:
                    transactions.turn()
                return

    def _join_again(self, member: Member) -> None:
        """Let the owner thread be faster than the call that is under way, and than the loop."""
        for _ in range(4):
            if not (member.frozen or member.ended):
                member.owner.turn()
                self.world.group.coordinate()
