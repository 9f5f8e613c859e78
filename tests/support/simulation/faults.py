"""What happens around a running member, by the name under which a plan draws it. Each event costs one step."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from parallel_consumer_runtime.core import Bounds, PartitionKey
from parallel_consumer_runtime.offsets import Encoding, EncodingError, OffsetMap, encode_as
from tests.support.simulation.group import Stored
from tests.support.simulation.member import Member

if TYPE_CHECKING:
    from tests.support.simulation.world import World

MEMBERS_MAX = 4
GARBAGE = ("not a map", '{"offset": 7}', "TEFCQw==", "bAAJ", "bgABAAMAAQAB//8=", "cA==", "=", "AQID", "l", "bAAL")
ENCODINGS = tuple(Encoding)


class Faults:
    """The broker's and the environment's events; a kind that cannot happen now does nothing."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self.by_name: dict[str, Callable[[], None]] = {
            "mark": self._mark,
            "compact": self._compact,
            "retain": self._retain,
            "recreate": self._recreate,
            "replace": self._replace_log,
            "lose metadata": self._lose_metadata,
            "garble metadata": self._garble_metadata,
            "foreign metadata": self._foreign_metadata,
            "join": self._join,
            "terminate": self._terminate,
            "kill": self._kill,
            "restart": self._restart,
            "freeze": self._freeze,
            "wake": self._wake,
            "block": self._block,
            "expire": self._expire,
            "rebalance": self._rebalance,
            "limit": self._limit,
            "halt": self._halt,
            "bounds": self._bounds,
            "gates": self._gates,
        }

    # Logs

    def _mark(self) -> None:
        log = self.world.any_log()
        log.slots += [None] * self.world.dice.pick((1, 1, 2, 3, 24))
        self.world.note("transaction marker written", log.key)

    def _compact(self) -> None:
        log, dice = self.world.any_log(), self.world.dice
        for _ in range(3):
            if log.end - 1 > log.start:
                offset = log.start + dice.below(log.end - 1 - log.start)
                if log.slots[offset] is not None:
                    log.remove(offset)
                    self.world.note("record compacted away", (log.key, offset))

    def _retain(self) -> None:
        log, world = self.world.any_log(), self.world
        stored = world.group.stored.get(log.key)
        start = log.start + world.dice.below(1 + min(8, log.end - log.start))
        if stored is not None and stored.log is log and start > stored.offset:
            world.note("log start moved past the commit", (log.key, start))
        log.retain_from(start)

    def _recreate(self) -> None:
        world = self.world
        world.delete(world.any_log().key)

    def _replace_log(self) -> None:
        world = self.world
        world.replace(world.any_log().key)

    # What the broker keeps of commits

    def _stored(self) -> tuple[PartitionKey, Stored] | None:
        key = self.world.any_log().key
        stored = self.world.group.stored.get(key)
        return None if stored is None else (key, stored)

    def _replace(self, key: PartitionKey, stored: Stored, metadata: str) -> None:
        self.world.group.stored[key] = stored._replace(metadata=metadata)
        stored.log.unsettle(stored.offset)

    def _lose_metadata(self) -> None:
        if (found := self._stored()) is not None and found[1].metadata:
            self.world.note("metadata lost at the broker", found[0])
            self._replace(*found, "")

    def _garble_metadata(self) -> None:
        if (found := self._stored()) is not None:
            self.world.note("metadata replaced by garbage", found[0])
            self._replace(*found, self.world.dice.pick(GARBAGE))

    def _foreign_metadata(self) -> None:
        """Another implementation commits in this group: a true map whose base is its lowest incomplete, in any encoding."""
        if (found := self._stored()) is None or found[1].log is not self.world.logs[found[0]]:
            return
        key, stored = found
        log, dice = stored.log, self.world.dice
        highest = max((offset for offset in log.done if offset < log.end), default=-1)
        incomplete = [o for o in range(stored.offset, highest) if log.slots[o] is not None and o not in log.done]
        if not incomplete or incomplete[0] != stored.offset:
            return
        ranges = tuple((offset, offset) for offset in incomplete if offset - 1 not in incomplete)
        ranges = tuple((first, _end_of(first, incomplete)) for first, _ in ranges)
        try:
            metadata = encode_as(OffsetMap(stored.offset, highest, ranges), dice.pick(ENCODINGS))
        except EncodingError:
            return
        self.world.note("metadata replaced by another writer's map", key)
        self._replace(key, stored, metadata)

    # Processes

    def _join(self) -> None:
        if len(self.world.members) < MEMBERS_MAX:
            self.world.join()

    def _terminate(self) -> None:
        member = self._any_member()
        if member is not None and not member.stopping:
            self.world.note("member terminated", member.name)
            member.loop.terminate()

    def _kill(self) -> None:
        if (member := self._any_member()) is not None:
            self.world.note("member killed", member.name)
            self.world.drop(member)

    def _restart(self) -> None:
        if (member := self._any_member()) is not None:
            self.world.note("member restarted in its place", member.name)
            if not (member.frozen and self.world.dice.chance(0.7)):
                self.world.drop(member)
            successor = Member(self.world, member.number)
            self.world.members.append(successor)
            self.world.group.join(successor)

    def _freeze(self) -> None:
        if (member := self._any_member()) is not None and not member.frozen:
            self.world.note("member frozen", member.name)
            member.frozen = True

    def _wake(self) -> None:
        if frozen := [member for member in self.world.members if member.frozen]:
            member = self.world.dice.pick(frozen)
            self.world.note("member woken", member.name)
            member.frozen = False

    def _block(self) -> None:
        """A handler blocks the event loop; the owner thread goes on."""
        if (member := self._any_member()) is not None:
            self.world.note("event loop blocked", member.name)
            member.blocked_until = self.world.now + self.world.dice.pick((0.5, 1.5, 3.0))

    def _expire(self) -> None:
        """A session ends: of a dead or frozen member, or, seldom, of a live one that was slow."""
        world = self.world
        silent = [
            number
            for number, member in world.group.members.items()
            if member.frozen or member.ended or world.dice.chance(0.5)
        ]
        if silent:
            world.expire(world.dice.pick(silent))

    def _rebalance(self) -> None:
        self.world.group.wanted = True

    # Live settings

    def _limit(self) -> None:
        if (member := self._any_member()) is not None:
            member.engine.limit = self.world.dice.pick((1, 2, 5, 20))
            self.world.note("concurrency changed", (member.name, member.engine.limit))

    def _halt(self) -> None:
        if (member := self._any_member()) is not None and not member.stopping:
            member.engine.halted = not member.engine.halted
            self.world.note("paused by its user", (member.name, member.engine.halted))

    def _bounds(self) -> None:
        if (member := self._any_member()) is not None:
            pick = self.world.dice.pick
            member.buffered_before = member.engine.statistics().buffered
            member.engine.bounds = Bounds(pick((1, 3, 20)), pick((3, 9, 60)), pick((20, 1000)))
            self.world.note("bounds changed", (member.name, *member.engine.bounds))

    def _gates(self) -> None:
        if (member := self._any_member()) is not None:
            self.world.note("gates changed", member.name)
            member.engine.set_gates(self.world.gates())

    def _any_member(self) -> Member | None:
        return self.world.dice.pick(self.world.members) if self.world.members else None


def _end_of(first: int, offsets: list[int]) -> int:
    last = first
    while last + 1 in offsets:
        last += 1
    return last
