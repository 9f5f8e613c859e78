"""The worker and the dispatcher of a simulated member: decides in which order calls end, and how."""

from typing import TYPE_CHECKING

from parallel_consumer_runtime.core import Task
from tests.support.simulation.checking import Bounded, KeyOrder, NothingTwice, NoZombies, name, shard_of

if TYPE_CHECKING:
    from tests.support.simulation.member import Member


class Executor:
    """Calls that run, and results on their way."""

    def __init__(self, member: "Member") -> None:
        self.member = member
        self._outcomes = {
            "done": self._done,
            "results": self._results,
            "raise": self._raised,
            "retry": self._retry,
            "skip": self._skip,
            "dead": self._dead,
            "never called": self._never_called,
        }

    def pull(self) -> None:
        """Start every call that may start now."""
        member = self.member
        engine, now, shape = member.engine, member.world.now, member.world.plan.shape
        ignored = engine.ignored
        if shape is None:
            while (task := engine.take(now)) is not None:
                self._start([task])
        else:
            while tasks := engine.take_batch(shape, now):
                self._start(tasks)
        self._note_waiting(engine.ignored - ignored)

    def _note_waiting(self, ignored: int) -> None:
        """Count the states that only the engine knows of."""
        member = self.member
        counts, engine = member.world.counts, member.engine
        counts["record ignored"] += ignored
        if member.world.gated and engine.statistics().gated:
            counts["record gated"] += 1
        if member.world.plan.small_map:
            parked = {id(task): task for _, partition in engine.partitions.items() for _, task in partition.parked}
            counts["record parked by a full map"] += sum(place not in member.parked for place in parked)
            for place, task in member.parked.items():
                if place not in parked and task.partition.live and task.record.offset <= task.partition.ledger.highest:
                    counts["parked record became a gap"] += 1
            member.parked = parked

    def end_one(self) -> None:
        """End one call, any of those that run."""
        running = self.member.running
        world = self.member.world
        index = world.dice.below(len(running))
        running[index], running[-1] = running[-1], running[index]
        task = running.pop()
        if not task.partition.live:
            world.note("record completed after its partition was revoked", self.member.name)
        self._outcomes["done" if world.calm else world.outcome()](task)

    def acknowledge_one(self) -> None:
        """Let one task's results be acknowledged, or not."""
        member, world = self.member, self.member.world
        if member.transactions is not None:
            member.transactions.deliver()
            return
        index = world.dice.below(len(member.producing))
        task = member.producing.pop(index)
        if not world.calm and world.dice.chance(world.plan.undelivered):
            world.note("results not acknowledged", name(task))
            self.undelivered(task)
        else:
            world.note("results acknowledged", name(task))
            self.acknowledged(task)

    def acknowledged(self, task: Task) -> None:
        """What the task produced was acknowledged."""
        self._settled(task)
        self.member.engine.acknowledge(task)

    def undelivered(self, task: Task) -> None:
        """What the task produced was not acknowledged."""
        task.attempt -= 1
        self._free(task)
        self.member.engine.retry(task, self.member.world.now + self._backoff_s(1), produced=True)

    def left(self, task: Task) -> None:
        """The task's partition is not ours any more, and what it came to goes nowhere."""
        self._settled(task)
        self.member.engine.complete(task)

    def _start(self, tasks: list[Task]) -> None:
        member, world = self.member, self.member.world
        Bounded.started(member)
        NoZombies.started(tasks)
        shards: dict[object, list[Task]] = {}
        for task in tasks:
            if (shard := shard_of(task, world.plan.ordering)) is not None:
                shards.setdefault((task.partition.key, shard), []).append(task)
        for together in shards.values():
            shard = shard_of(together[0], world.plan.ordering)
            member.one_at_a_time.started(together, shard)
            KeyOrder.started(together, member.tenure_of(together[0]), shard, world.plan.ignored)
        slow = not world.calm and world.dice.chance(world.plan.slow)
        for task in tasks:
            tenure = member.tenure_of(task)
            NothingTwice.started(task, tenure)
            tenure.started.add(task.record.offset)
            world.trace.append(f"S {member.name} {name(task)} {task.attempt}")
        if slow:
            world.note("handler slow", name(tasks[0]))
            member.slow += tasks
        else:
            member.running += tasks

    # Outcomes: `dispatch.py` restated

    def _done(self, task: Task) -> None:
        self.member.world.note("handler done", name(task))
        self._settled(task)
        self.member.engine.complete(task)

    def _skip(self, task: Task) -> None:
        self.member.world.note("handler skipped", name(task))
        self._settled(task)
        self.member.engine.complete(task)

    def _results(self, task: Task) -> None:
        if task.shard is not None and task.partition.shards.get(task.shard):
            self.member.world.note("key held by results on their way", name(task))
        if self.member.transactions is not None:
            self.member.transactions.send(task)
            return
        self.member.engine.await_acknowledgement()
        self.member.producing.append(task)

    def _dead(self, task: Task) -> None:
        self._failed(task, final=True)

    def _raised(self, task: Task) -> None:
        self.member.world.note("handler raised", name(task))
        self._failed(task, final=self.member.world.plan.policy.exhausted(task.attempt))

    def _failed(self, task: Task, *, final: bool) -> None:
        if final and self.member.world.plan.dead_letters:
            self.member.world.note("handler gave up: dead letter", name(task))
            self._results(task)
        else:
            self._again(task, self._backoff_s(task.attempt))

    def _retry(self, task: Task) -> None:
        self.member.world.note("handler asked for a retry", name(task))
        self._again(task, self.member.world.dice.random() * 2)

    def _never_called(self, task: Task) -> None:
        self.member.world.note("handler never called", name(task))
        task.attempt -= 1
        self._again(task, 0.0)

    def _again(self, task: Task, after_s: float) -> None:
        if task.group is not None and task.group.pending > 1:
            self.member.world.note("batch of one key failed in part", name(task))
        self._free(task)
        self.member.engine.retry(task, self.member.world.now + after_s)

    def _backoff_s(self, attempt: int) -> float:
        return self.member.world.plan.policy.backoff_s(attempt, self.member.world.dice.random())

    def _settled(self, task: Task) -> None:
        """The record is done: whoever knows it, and whether or not the engine still counts it."""
        tenure, offset = self.member.tenure_of(task), task.record.offset
        if self.member.transactions is None:  # else it is done when its transaction is committed
            tenure.log.done.add(offset)
        if task.partition.live:
            tenure.done.append((tenure, offset))
            tenure.finished.add(offset)
        if (shard := shard_of(task, self.member.world.plan.ordering)) is not None:
            tenure.unfinished[shard].discard(offset)
        self._free(task)

    def _free(self, task: Task) -> None:
        if (shard := shard_of(task, self.member.world.plan.ordering)) is not None:
            self.member.one_at_a_time.ended(task, shard)
