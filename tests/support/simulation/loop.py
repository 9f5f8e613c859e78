"""The event loop of a simulated member: `member.py` restated, message by message, without the loop."""

from functools import partial
from typing import TYPE_CHECKING

from parallel_consumer_runtime.core import End, Partition, PartitionKey
from parallel_consumer_runtime.kafka.positions import Start
from tests.support.simulation.checking import Bounded, Tenure
from tests.support.simulation.log import Fetched, Log
from tests.support.simulation.request import Planned

if TYPE_CHECKING:
    from tests.support.simulation.member import Member


class Drain:
    """A revocation for which the owner thread waits."""

    __slots__ = ("asked", "cancelled", "clean", "commits", "ends", "keys")

    def __init__(self, keys: list[PartitionKey]) -> None:
        self.keys = keys
        self.ends = 0.0
        """When the loop gives up waiting."""
        self.commits: Planned | None = None
        """The answer."""
        self.cancelled = False
        self.asked = False
        """A transaction is being ended for it."""
        self.clean = True
        """Nothing of them was left to others."""


class Loop:
    """Feeds the engine and asks it."""

    def __init__(self, member: "Member") -> None:
        self.member = member
        self.heard = 0
        """Revocations heard of: stamps what is asked of the owner."""
        self._committing = False
        self._closed = False
        """Everything was drained; the last transaction is being ended."""
        self._drains: list[Drain] = []
        self._closing: list[PartitionKey] | None = None
        self.closing_ends = 0.0

    def step(self, messages: int) -> None:
        """Hear so many messages, then do what is due, then let the worker pull."""
        member = self.member
        inbox = member.inbox
        for _ in range(min(messages, len(inbox))):
            receive, argument = inbox.popleft()
            receive(argument)
        if self._drains:
            self._answer_drains()
        now = member.world.now
        due = member.engine.next_retry_at
        if due is not None and due <= now:
            member.engine.wake_retries(now)
        member.executor.pull()
        if self._closing is not None:
            self._close(self._closing)

    # What the owner thread tells

    def on_assigned(self, starts: list[tuple[Start, Tenure]]) -> None:
        """Partitions are ours."""
        member = self.member
        for start, tenure in starts:
            active = (*member.running, *member.slow, *member.producing)
            if any(task.partition.key == start.key for task in active):
                member.world.note("partition came back while its old task ran", member.name)
            if start.ledger.highest >= 0:
                member.world.note("map read", member.name)
            elif not start.readable:
                member.world.note("map refused", member.name)
            member.tenures[member.engine.assign(start.key, start.ledger)] = tenure

    def on_batch(self, batch: dict[PartitionKey, Fetched]) -> None:
        """Records were polled."""
        member, world = self.member, self.member.world
        engine = member.engine
        for key, (log, records) in batch.items():
            partition = engine.partitions.get(key)
            if partition is None:
                world.note("batch arrived after its partition was revoked", member.name)
            else:
                world.watch_delivery(partition.ledger, records)
            skipped = engine.skipped
            engine.offer(key, records, world.now)
            if (present := engine.partitions.get(key)) is not None:
                self._read_on(present, log)
            if engine.skipped > skipped:
                world.note("record skipped by the map", member.name)
        Bounded.offered(member)
        self.flow()
        member.outstanding -= 1

    def _read_on(self, partition: Partition, log: Log) -> None:
        """Keep what is known of an assignment with the log that it reads."""
        member = self.member
        tenure = member.tenures.get(partition)
        if tenure is None:
            member.world.note("log that began anew within an assignment", partition.key)
            member.tenures[partition] = Tenure(log, blind=False)
        elif tenure.log is not log:
            # Nothing tells the logs apart: no offset was passed again. What the old one's map calls complete is passed over.
            log.mistaken = max(log.mistaken, partition.ledger._mapped_to + 1)  # pyright: ignore[reportPrivateUsage]
            log.done.update(range(log.mistaken))
            member.tenures[partition] = Tenure(log, blind=False, before=tenure)

    def on_revoking(self, drain: Drain) -> None:
        """Drain partitions before they are given up."""
        if drain.cancelled:
            return
        member = self.member
        if member.engine.statistics().retrying:
            member.world.note("revoked with a retry waiting", member.name)
        member.engine.close(drain.keys)
        drain.ends = member.world.now + member.world.plan.drain_timeout_s
        self._drains.append(drain)

    def on_revoked(self, told: tuple[list[PartitionKey], bool]) -> None:
        """Partitions are gone."""
        keys, _ = told
        self.heard += 1
        self.member.engine.revoke(keys)
        if self.member.transactions is not None:
            self.member.transactions.lost()

    def on_rewound(self, _: None) -> None:
        """Partitions are about to start anew; what was asked for them before means nothing any more."""
        self.heard += 1

    def on_committed(self, told: tuple[Planned, str | None]) -> None:
        """A commit ended."""
        planned, error = told
        self._committing = False
        self.member.engine.committed([commit for commit, _, _ in planned], acknowledged=error is None)

    def new_drain(self, keys: list[PartitionKey]) -> Drain:
        """Return a drain to wait for."""
        return Drain(keys)

    # Tickers

    def flow(self) -> None:
        """Tell the owner what to fetch."""
        member, world = self.member, self.member.world
        flow = member.engine.flow()
        if flow.pause:
            world.note("partition paused alone", member.name)
            member.commands.append((member.owner.pause, (flow.pause, self.heard)))
        if flow.resume:
            member.commands.append((member.owner.resume, (flow.resume, self.heard)))
        if member.wanted and not flow.wanted:
            world.note("all partitions held", member.name)
        member.wanted = flow.wanted

    def commit(self) -> None:
        """Commit what changed, unless a commit is on its way, or the last one is planned."""
        if (transactions := self.member.transactions) is not None:
            if not self._committing and not self._closed:
                self._committing = True
                transactions.request(self._cut_ended)
            return
        if (
            not self._committing
            and self.member.owner.last_commits is None
            and (commits := self.member.engine.commits())
        ):
            self._committing = True
            self.member.commands.append((self.member.owner.commit, (self.member.planned(commits), self.heard)))

    def terminate(self) -> None:
        """SIGTERM: hand out nothing more, drain, commit, end."""
        member = self.member
        member.stopping = member.engine.halted = True
        self._closing = list(member.engine.partitions)
        self.closing_ends = member.world.now + member.world.plan.drain_timeout_s

    # Ends of transactions

    def _cut_ended(self, _: End) -> None:
        self._committing = False

    def _close_ended(self, _: End) -> None:
        self.member.owner.last_commits = ([], self.heard)

    @staticmethod
    def _drain_ended(drain: Drain, end: End) -> None:
        drain.clean = drain.clean and end is not End.ABORTED
        drain.commits = []

    def _answer_drains(self) -> None:
        member = self.member
        for drain in self._drains:
            timed_out = member.world.now >= drain.ends
            if drain.cancelled or drain.asked:
                continue
            if timed_out or not member.engine.active(drain.keys):
                if timed_out:
                    member.world.note("drain timed out", member.name)
                    drain.clean = False
                if member.transactions is not None:
                    drain.asked = True
                    member.transactions.request(partial(self._drain_ended, drain))
                    continue
                drain.commits = member.planned(member.engine.final_commits(drain.keys))
        self._drains = [drain for drain in self._drains if drain.commits is None and not drain.cancelled]

    def _close(self, keys: list[PartitionKey]) -> None:
        member = self.member
        if member.engine.active(keys) and member.world.now < self.closing_ends:
            return
        self._closing = None
        if member.transactions is not None:
            self._closed = True
            member.transactions.request(self._close_ended)
            return
        member.owner.last_commits = (self.member.planned(member.engine.final_commits(keys)), self.heard)
