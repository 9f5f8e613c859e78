"""The owner thread of a simulated member: `kafka/owner.py` restated, turn by turn, without the thread.

Each turn runs what the loop asked for, then polls: callbacks first, then records, and perhaps one more callback between
two halves of what was polled, which is how a batch arrives after the revocation of its partition.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from parallel_consumer_runtime.core import PartitionKey
from parallel_consumer_runtime.kafka import positions
from tests.support.simulation.checking import HandedOver, Tenure
from tests.support.simulation.commits import answer, send, send_and_wait
from tests.support.simulation.log import Fetched

if TYPE_CHECKING:
    from tests.support.simulation.loop import Drain
    from tests.support.simulation.member import Member
    from tests.support.simulation.request import Planned

Batch = dict[PartitionKey, Fetched]

start_of = cast("Callable[..., positions.Start]", positions._start)  # pyright: ignore[reportPrivateUsage]
"""Of the consumer it asks for the log's end alone, which an `Owner` answers."""
STALL_S = 1.0
OUTSTANDING_MAX = 2


class Owner:
    """Polls, runs callbacks, commits."""

    def __init__(self, member: "Member") -> None:
        self.member = member
        self.draining: Drain | None = None
        self.last_commits: tuple[Planned, int] | None = None
        """Set by the loop when the process is to end: `stop`."""
        self.looking_up: list[PartitionKey] | None = None
        """Assigned, and their commits are not known yet: they are unstable, or the look-up failed."""
        self._lookup_ends = self._drain_ends = 0.0
        self._held: Batch = {}
        self._revoked_at: dict[PartitionKey, int] = {}
        """The number of the last revocation of each partition, as told to the loop."""
        self._revocations = 0

    @property
    def waiting(self) -> bool:
        """Whether a callback has not returned."""
        return self.draining is not None or self.looking_up is not None

    def turn(self) -> None:
        """Go round once."""
        member = self.member
        if self.draining is not None:
            self._await_drain(self.draining)
        elif self.looking_up is not None:
            self._assign(self.looking_up)
        else:
            for _ in range(len(member.commands)):
                command, argument = member.commands.popleft()
                command(argument)
            if self.last_commits is not None:
                self._close(self.last_commits)
            else:
                self._poll()

    def _poll(self) -> None:
        member, dice = self.member, self.member.world.dice
        while member.arrived:
            answer(member, member.arrived.popleft())
        while member.mail and not self.waiting:
            self._callback()
            if dice.chance(0.5):
                break
        if not self.waiting and not member.ended:
            batch = self._fetch()
            if member.mail and dice.chance(0.5):
                self._callback()
            if self.draining is None:  # what was polled before a look-up is handed over before its answer
                self._hand_over(batch)
            else:
                self._held = batch

    # Commands

    def valid(self, key: PartitionKey, heard: int) -> bool:
        """Whether a command that the loop gave after hearing so many revocations still means this assignment."""
        if key in self.member.positions and self._revoked_at.get(key, 0) <= heard:
            return True
        self.member.world.note("command for a revoked assignment dropped", self.member.name)
        return False

    def pause(self, asked: tuple[list[PartitionKey], int]) -> None:
        """Fetch nothing more of these partitions."""
        keys, heard = asked
        self.member.paused.update(key for key in keys if self.valid(key, heard))

    def resume(self, asked: tuple[list[PartitionKey], int]) -> None:
        """Fetch these partitions again."""
        keys, heard = asked
        self.member.paused.difference_update([key for key in keys if self.valid(key, heard)])

    def unpause(self, key: PartitionKey) -> None:
        """A partition is assigned: end the pause of an assignment that is over."""
        if key in self.member.paused:
            self.member.world.note("pause outlived its assignment", self.member.name)
            self.member.paused.discard(key)

    def commit(self, asked: "tuple[Planned, int]") -> None:
        """Commit asynchronously."""
        planned, heard = asked
        current = [each for each in planned if each[0].source.live and self.valid(each[0].source.key, heard)]
        if current:
            send(self.member, planned, current)
        else:
            self.member.inbox.append((self.member.loop.on_committed, (planned, "revoked meanwhile")))

    def rewind(self, keys: list[PartitionKey]) -> None:
        """Start partitions anew where the group's commits are: `ConsumerOwner._rewind`."""
        member = self.member
        chosen = list(member.positions) if member.world.plan.eager else [key for key in keys if key in member.positions]
        self._revocations += 1
        for key in chosen:
            self._forget(key)
        member.inbox.append((member.loop.on_rewound, None))
        if chosen:
            self._assign(chosen)

    # Callbacks

    def _callback(self) -> None:
        member = self.member
        kind, keys, generation = member.mail.popleft()
        if kind == "assign":
            member.generation = generation
            self._assign(keys)
        elif kind == "revoke":
            self._revoke([key for key in keys if key in member.positions])
        elif kind == "lost":
            member.world.note("zombie learnt that its partitions were lost", member.name)
            self._gone(list(member.positions), lost=True)
            member.world.group.join(member)
        else:
            member.world.note("fenced process ended", member.name)
            member.world.end(member)

    def _assign(self, keys: list[PartitionKey]) -> None:
        member, world = self.member, self.member.world
        if (starts := self._starts(keys)) is None:
            return
        told: list[tuple[positions.Start, Tenure]] = []
        for start in starts:
            log = world.logs[start.key]
            world.take_over(start, log)
            member.positions[start.key] = log.in_range(start.offset if start.offset >= 0 else log.start)
            self.unpause(start.key)
            member.reading[start.key] = log
            told.append((start, Tenure(log, blind=not start.readable)))
        member.inbox.append((member.loop.on_assigned, told))

    def _starts(self, keys: list[PartitionKey]) -> list[positions.Start] | None:
        """Return where partitions start, None when it is not known yet: `positions.starts`."""
        member, world = self.member, self.member.world
        if (transactions := member.transactions) is None:
            return [start_of(self, world.committed(key)) for key in keys]
        if self.looking_up is None:
            self._lookup_ends = world.now + transactions.plan.lookup_timeout_s
        self.looking_up = None
        if not world.coordinator.unstable(keys):
            try:
                return [start_of(self, world.committed(key), exact=True) for key in keys]
            except KafkaException:
                pass
        else:
            world.note("offsets of an open transaction waited for", member.name)
        if not world.calm and world.now >= self._lookup_ends:
            world.note("process ended by its transaction", (member.name, "unstable offsets"))
            world.end(member)
        else:
            self.looking_up = keys
        return None

    def get_watermark_offsets(self, partition: TopicPartition, timeout: float) -> tuple[int, int]:
        """Answer as the real consumer does: log start and log end."""
        del timeout
        world = self.member.world
        if not world.calm and world.dice.chance(world.plan.lookup_failures):
            world.note("watermark lookup failed", self.member.name)
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))  # pyright: ignore[reportPrivateUsage]
        log = world.logs[PartitionKey(partition.topic, partition.partition)]
        return log.start, log.end

    def _revoke(self, keys: list[PartitionKey]) -> None:
        member = self.member
        drain = self.draining = member.loop.new_drain(keys)
        settle_timeout_s = STALL_S if member.transactions is None else member.transactions.plan.settle_timeout_s
        self._drain_ends = member.world.now + member.world.plan.drain_timeout_s + settle_timeout_s
        member.inbox.append((member.loop.on_revoking, drain))

    def _await_drain(self, drain: "Drain") -> None:
        member = self.member
        if drain.commits is not None:
            if send_and_wait(member, drain.commits) and drain.clean:
                HandedOver.given_up(member, drain.keys)
        elif member.world.now >= self._drain_ends:
            drain.cancelled = True
            if member.transactions is not None:
                member.world.note("process ended by its transaction", (member.name, "not in time"))
                member.world.end(member)
                return
            member.world.note("drain timed out", member.name)
        else:
            return
        self.draining = None
        self._gone(drain.keys, lost=False)
        member.world.group.give_up(member, drain.keys)
        batch, self._held = self._held, {}
        self._hand_over(batch)

    def _gone(self, keys: list[PartitionKey], *, lost: bool) -> None:
        member = self.member
        self._revocations += 1
        member.inbox.append((member.loop.on_revoked, (keys, lost)))
        for key in keys:
            self._forget(key)

    def _forget(self, key: PartitionKey) -> None:
        self._revoked_at[key] = self._revocations
        self.member.positions.pop(key, None)  # and the client keeps its pause

    # Records

    def _fetch(self) -> Batch:
        member, batch = self.member, Batch()
        room = member.world.plan.batch_max
        if not member.wanted or member.outstanding >= OUTSTANDING_MAX:
            return batch
        keys = list(member.positions)
        shift = member.world.dice.below(len(keys)) if len(keys) > 1 else 0
        for key in (*keys[shift:], *keys[:shift]):
            if room and key not in member.paused:
                log = member.world.logs[key]
                # The client finds nothing where it was in a log that is another one by now, and begins at its start.
                position = member.positions[key] if member.reading[key] is log else log.start
                member.reading[key] = log
                fetched, member.positions[key] = log.fetch(log.in_range(position), room)
                room -= len(fetched.records)
                if fetched.records:
                    batch[key] = fetched
        return batch

    def _hand_over(self, batch: Batch) -> None:
        if batch:
            self.member.outstanding += 1
            self.member.inbox.append((self.member.loop.on_batch, batch))

    # The end

    def _close(self, asked: "tuple[Planned, int]") -> None:
        member = self.member
        planned, heard = asked
        valid = [each for each in planned if self.valid(each[0].source.key, heard)]
        if send_and_wait(member, valid) and member.world.now < member.loop.closing_ends:
            HandedOver.given_up(member, [commit.source.key for commit, _, _ in valid])
        member.world.end(member)
