"""The fake broker's side of transactions: who may write under an id, what is open, and what readers of committed records see.

Simplified to what a member can see of it: markers are written at once. An id's epoch is raised by each life that begins
under it, and when its transaction is given up; a call with an older epoch is refused. Offsets of an open transaction are
unstable: whoever is assigned their partition waits.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from parallel_consumer_runtime.core import PartitionKey
from tests.support.simulation.group import Entry
from tests.support.simulation.results_seen import Produced, ResultsSeen

if TYPE_CHECKING:
    from tests.support.simulation.member import Member
    from tests.support.simulation.world import World


class Identity:
    """One transactional id."""

    __slots__ = ("committed", "entries", "epoch", "given_up", "recoverable", "results")

    def __init__(self) -> None:
        self.epoch = 0
        self.results: list[Produced] = []
        """Of the open transaction, in the order of the log."""
        self.entries: list[Entry] = []
        self.committed = False
        """How the last transaction ended: a call that is repeated is answered by it."""
        self.given_up = -1
        """The epoch whose transaction took too long."""
        self.recoverable = False
        """And whether its producer may go on under another one."""

    @property
    def open(self) -> bool:
        """Whether a transaction is open that holds anything."""
        return bool(self.results or self.entries)


class Answer(NamedTuple):
    """Why a call was refused."""

    words: str
    final: bool = False


FENCED = Answer("fenced by a newer life of its id", final=True)


class Coordinator:
    """All transactional ids."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self.ids: dict[int, Identity] = {}
        self.seen = ResultsSeen()
        self._position = 0

    def begin_life(self, number: int) -> int:
        """A process begins under its place's id: fence those before. Return its epoch."""
        identity = self.ids.setdefault(number, Identity())
        if identity.open:
            self.world.note("open transaction ended by the next life", number)
        self._abort(identity)
        identity.epoch += 1
        return identity.epoch

    def append(self, number: int, epoch: int, result: Produced) -> Answer | None:
        """Write one result."""
        identity = self.ids[number]
        if (answer := self._fence(identity, epoch)) is not None:
            return answer
        self._position += 1
        identity.results.append(result._replace(position=self._position))
        return None

    def add_offsets(self, member: "Member", epoch: int, generation: int, entries: list[Entry]) -> Answer | None:
        """Make offsets part of the open transaction."""
        identity, group = self.ids[member.number], self.world.group
        if (answer := self._fence(identity, epoch)) is not None:
            return answer
        if group.members.get(member.number) is not member or generation != group.generation:
            self.world.note("call refused: abort", (member.name, "another generation"))
            return Answer("another generation")
        kept = {entry.commit.source.key: entry for entry in identity.entries}
        identity.entries = list((kept | {entry.commit.source.key: entry for entry in entries}).values())
        return None

    def end(self, member: "Member", epoch: int, *, commit: bool) -> Answer | None:
        """Commit or abort the open transaction."""
        identity = self.ids[member.number]
        if (answer := self._fence(identity, epoch)) is not None:
            return answer
        if not identity.open:
            return None if identity.committed is commit else Answer("no such transaction", final=True)
        if not commit:
            self._abort(identity)
            return None
        self.seen.committed(identity.results, identity.entries)
        for entry in identity.entries:
            self.world.group.store(member, entry)
        identity.results, identity.entries, identity.committed = [], [], True
        return None

    def time_out(self, number: int) -> None:
        """Give up a transaction that is open for too long."""
        identity = self.ids[number]
        self.world.note("transaction timed out at the coordinator", number)
        self._abort(identity)
        identity.given_up = identity.epoch
        identity.epoch += 1
        identity.recoverable = self.world.dice.chance(0.75)

    def recover(self, number: int, epoch: int) -> int | None:
        """Give a producer whose transaction took too long another epoch, when it may have one."""
        identity = self.ids[number]
        if identity.given_up == epoch == identity.epoch - 1 and identity.recoverable:
            return identity.epoch
        return None

    def unstable(self, keys: Iterable[PartitionKey]) -> bool:
        """Whether an open transaction holds offsets of one of these partitions."""
        keys = set(keys)
        return any(entry.commit.source.key in keys for one in self.ids.values() for entry in one.entries)

    @property
    def open(self) -> list[int]:
        """Which ids have an open transaction that holds anything."""
        return [number for number, identity in self.ids.items() if identity.open]

    def _fence(self, identity: Identity, epoch: int) -> Answer | None:
        if epoch == identity.epoch:
            return None
        self.world.note("call of an old epoch refused", (identity.epoch, epoch))
        if identity.given_up == epoch == identity.epoch - 1 and identity.recoverable:
            return Answer("its transaction took too long")
        return FENCED

    @staticmethod
    def _abort(identity: Identity) -> None:
        identity.results, identity.entries, identity.committed = [], [], False
