"""The owner thread of a simulated member: `kafka/owner.py` restated, turn by turn, without the thread.

Each turn runs what the loop asked for, then polls: callbacks first, then records, and perhaps one more callback between
two halves of what was polled, which is how a batch arrives after the revocation of its partition.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from parallel_consumer_runtime.core import PartitionKey
from parallel_consumer_runtime.kafka import positions
from parallel_consumer_runtime.kafka.librdkafka import Position
from tests.support.simulation.checking import HandedOver, Tenure
from tests.support.simulation.commits import answer, send, send_and_wait
from tests.support.simulation.log import Fetched

if TYPE_CHECKING:
    from tests.support.simulation.loop import Drain
    from tests.support.simulation.member import Member
    from tests.support.simulation.request import Planned

Batch = dict[PartitionKey, Fetched]

start_of = cast("Callable[[Owner, Position], positions.Start]", positions._start)  # pyright: ignore[reportPrivateUsage]
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
        self._drain_ends = 0.0
        self._held: Batch = {}
        self._revoked_at: dict[PartitionKey, int] = {}
        """The number of the last revocation of each partition, as told to the loop."""
        self._revocations = 0

    def turn(self) -> None:
        """Go round once."""
        member = self.member
        if self.draining is not None:
            self._await_drain(self.draining)
            return
        for _ in range(len(member.commands)):
            command, argument = member.commands.popleft()
            command(argument)
        if self.last_commits is not None:
            self._close(self.last_commits)
            return
        dice = member.world.dice
        while member.arrived:
            answer(member, member.arrived.popleft())
        while member.mail and self.draining is None:
            self._callback()
            if dice.chance(0.5):
                break
        if self.draining is None and not member.ended:
            batch = self._fetch()
            if member.mail and dice.chance(0.5):
                self._callback()
            if self.draining is None:
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

    def commit(self, asked: "tuple[Planned, int]") -> None:
        """Commit asynchronously."""
        planned, heard = asked
        current = [each for each in planned if each[0].source.live and self.valid(each[0].source.key, heard)]
        if current:
            send(self.member, planned, current)
        else:
            self.member.inbox.append((self.member.loop.on_committed, (planned, "revoked meanwhile")))

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
        starts = [start_of(self, world.committed(key)) for key in keys]
        told: list[tuple[positions.Start, Tenure]] = []
        for start in starts:
            log = world.logs[start.key]
            world.take_over(start, log)
            member.positions[start.key] = log.in_range(start.offset if start.offset >= 0 else log.start)
            member.reading[start.key] = log
            told.append((start, Tenure(log, blind=not start.readable)))
        member.inbox.append((member.loop.on_assigned, told))

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
        self._drain_ends = member.world.now + member.world.plan.drain_timeout_s + STALL_S
        member.inbox.append((member.loop.on_revoking, drain))

    def _await_drain(self, drain: "Drain") -> None:
        member = self.member
        if drain.commits is not None:
            if send_and_wait(member, drain.commits) and member.world.now < drain.ends:
                HandedOver.given_up(member, drain.keys)
        elif member.world.now >= self._drain_ends:
            drain.cancelled = True
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
            self._revoked_at[key] = self._revocations
            member.positions.pop(key, None)
            member.paused.discard(key)

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
