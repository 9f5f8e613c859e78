"""The fake broker's side of the group: members, generations, rebalances, and the commits that it keeps.

Simplified to what a consumer can see of it: a rebalance asks for partitions back, waits for them, begins a generation and
gives them out. A commit counts when its sender is a member and its generation is the present one, whatever it speaks of.
"""

from typing import TYPE_CHECKING, NamedTuple

from parallel_consumer_runtime.core import PartitionCommit, PartitionKey
from parallel_consumer_runtime.core.map_bounds import METADATA_SIZE_MAX
from parallel_consumer_runtime.kafka.librdkafka import Position
from parallel_consumer_runtime.offsets import decode
from tests.support.simulation.checking import CommitsGoForward, NothingLost, Tenure
from tests.support.simulation.log import Log

if TYPE_CHECKING:
    from tests.support.simulation.member import Member
    from tests.support.simulation.world import World

TOO_LARGE = "the metadata is too large"


class Stored(NamedTuple):
    """A commit that the broker keeps."""

    offset: int
    metadata: str
    log: Log
    """What it speaks of: a topic that was deleted and made again has another log."""


class Entry(NamedTuple):
    """One partition of a commit."""

    position: Position
    commit: PartitionCommit
    tenure: Tenure
    done: int
    """How many records its assignment had done when it was planned."""


class Group:
    """Coordinates; acts only when the world lets it."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self.generation = 0
        self.members: dict[int, Member] = {}
        self.owner: dict[PartitionKey, int] = {}
        self.stored: dict[PartitionKey, Stored] = {}
        self.wanted = False
        """A rebalance is due."""
        self._waiting: dict[int, None] | None = None
        """Who has to give something up before the next generation begins; None when no rebalance is under way."""
        self._target: dict[PartitionKey, int] = {}

    @property
    def busy(self) -> bool:
        """Whether a rebalance is under way."""
        return self._waiting is not None

    def join(self, member: "Member") -> None:
        """A process becomes a member. As a static member it gets what its place had, and the process before it is fenced."""
        number = member.number
        before = self.members.get(number)
        self.members[number] = member
        if before is None:
            self.wanted = True
            return
        before.mail.clear()
        before.mail.append(("fenced", [], 0))
        owned = [key for key in self.world.plan.partitions if self.owner.get(key) == number]
        if self._waiting is None:
            member.mail.append(("assign", owned, self.generation))
        else:
            self.give_up(member, owned)

    def remove(self, number: int) -> None:
        """A member leaves, or its session ended."""
        del self.members[number]
        self.owner = {key: owner for key, owner in self.owner.items() if owner != number}
        self.wanted = True
        self._rejoined(number)

    def give_up(self, member: "Member", keys: list[PartitionKey]) -> None:
        """A member's revocation is over."""
        if self.members.get(member.number) is member:
            for key in keys:
                self.owner.pop(key, None)
            self._rejoined(member.number)

    def coordinate(self) -> None:
        """Begin a rebalance that is due, unless one is under way."""
        world, plan, numbers = self.world, self.world.plan, list(self.members)
        if self._waiting is not None or not numbers:
            return
        world.make_again()
        if not self.wanted:
            return
        self.wanted = False
        world.note("rebalance, eager" if plan.eager else "rebalance, cooperative", numbers)
        shift = world.dice.below(len(numbers))
        self._target = {
            key: self.owner[key]
            if key in self.owner and world.dice.chance(0.4)
            else numbers[(index + shift) % len(numbers)]
            for index, key in enumerate(plan.partitions)
            if key not in world.deleted
        }
        self._waiting = {}
        for number, member in self.members.items():
            owned = [key for key in plan.partitions if self.owner.get(key) == number]
            moving = owned if plan.eager else [key for key in owned if self._target.get(key) != number]
            if moving:
                self._waiting[number] = None
                member.mail.append(("revoke", moving, 0))
        self._complete()

    def _rejoined(self, number: int) -> None:
        if self._waiting is not None:
            self._waiting.pop(number, None)
            self._complete()

    def _complete(self) -> None:
        if self._waiting:
            return
        self._waiting = None
        self.generation += 1
        if not all(number in self.members for number in self._target.values()):
            self.wanted = True
        for number, member in self.members.items():
            gained = [key for key, to in self._target.items() if to == number and self.owner.get(key) != number]
            self.owner.update(dict.fromkeys(gained, number))
            member.mail.append(("assign", gained, self.generation))

    # Commits

    def apply(self, member: "Member", generation: int, entries: list[Entry]) -> str | None:
        """Take a commit. Return why not, or why not all of it."""
        if self.members.get(member.number) is not member or generation != self.generation:
            self.world.note("commit fenced", member.name)
            return "another generation"
        refused = 0
        for entry in entries:
            if len(entry.position.metadata) > self.world.plan.metadata_max:
                refused += 1
            else:
                self.store(member, entry)
        if refused:
            self.world.note("commit refused: metadata too large", member.name)
            if refused < len(entries):
                self.world.note("commit of a partition refused, of others applied", member.name)
            return TOO_LARGE
        return None

    def store(self, member: "Member", entry: Entry) -> None:
        """Keep what a commit says of one partition."""
        (topic, partition, offset, metadata), log = entry.position, entry.tenure.log
        key = PartitionKey(topic, partition)
        stored = self.stored.get(key)
        current = self.world.logs[key] is log
        if current and not entry.done and stored is not None and stored.log is not log and stored.offset == offset:
            log = stored.log  # it repeats what it found: the commit of a log that is gone
        elif current:
            CommitsGoForward.applied(entry, stored)
            NothingLost.applied(entry)
            if offset <= log.end:
                self._settle(member, entry)
            else:  # it counts by the log that was here before: whoever reads it finds nothing there
                log.unsettle(0)
                log = Log(key)
        self.stored[key] = Stored(offset, metadata, log)
        self.world.trace.append(f"C {member.name} {topic} {partition} {offset} {metadata}")

    def _settle(self, member: "Member", entry: Entry) -> None:
        """Note which records nobody may handle again."""
        tenure, commit = entry.tenure, entry.commit
        log, highest = tenure.log, commit.highest
        if commit.incomplete and member.metadata_size_max < METADATA_SIZE_MAX:
            kept = decode(entry.position.metadata, commit.offset).highest
            if kept < highest:
                self.world.note("map cut to what fits", member.name)
                log.unsettle(kept + 1)
                highest = kept
        if tenure.blind:
            log.unsettle(commit.offset)
        first = tenure.settled_to if tenure.settled_epoch == log.settled_epoch else 0
        log.settlements += 1
        for of, offset in tenure.done[first : entry.done]:
            if of is tenure and offset <= highest:
                log.settled.setdefault(offset, log.settlements)
        tenure.settled_to, tenure.settled_epoch = max(entry.done, tenure.settled_to), log.settled_epoch
