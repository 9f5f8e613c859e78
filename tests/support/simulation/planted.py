"""Bugs on purpose: small changes of the real code's behaviour, each of which the simulation must find.

A simulation that finds nothing may be blind. Each of these is a mistake that someone could make, or that this project has
made before; it is put in place for one search and taken out again.
"""

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from operator import itemgetter
from typing import Any, NamedTuple

from parallel_consumer_runtime.core import Engine, Flow, Ledger, Partition, PartitionCommit, PartitionKey, Task
from parallel_consumer_runtime.core.map_bounds import MapBounds
from parallel_consumer_runtime.core.retries import DelayHeap
from parallel_consumer_runtime.core.shards import Group, release
from parallel_consumer_runtime.handlers import Record
from parallel_consumer_runtime.kafka import positions
from parallel_consumer_runtime.kafka.librdkafka import Position
from parallel_consumer_runtime.offsets import OffsetMap, decode, encode
from tests.support.simulation.executor import Executor
from tests.support.simulation.loop import Loop
from tests.support.simulation.owner import Owner
from tests.support.simulation.planted_transactions import BUGS

# White-box by nature: each reaches into what it breaks.
# pyright: reportPrivateUsage=false


class Planted(NamedTuple):
    """One bug."""

    name: str
    owner: Any
    """The class or module whose attribute is replaced."""
    attribute: str
    broken: Any


@contextmanager
def planted(bug: Planted | None) -> Generator[None]:
    """Run with a bug, or without one."""
    if bug is None:
        yield
        return
    sound = bug.owner.__dict__[bug.attribute]
    setattr(bug.owner, bug.attribute, bug.broken)
    try:
        yield
    finally:
        setattr(bug.owner, bug.attribute, sound)


# Commits


def _highest(ledger: Ledger) -> int | None:
    return ledger.highest + 1 if ledger.highest >= 0 else ledger._base


def _failed_is_forgotten(engine: Engine, commits: Iterable[PartitionCommit], *, acknowledged: bool) -> None:
    if acknowledged:
        _committed(engine, commits, acknowledged=True)


_committed = Engine.committed


def _acknowledged_is_clean(engine: Engine, commits: Iterable[PartitionCommit], *, acknowledged: bool) -> None:
    _committed(engine, commits, acknowledged=acknowledged)
    for commit in commits:
        commit.source.ledger.dirty &= not acknowledged


def _no_map(commit: PartitionCommit, size_max: int) -> Position:
    del size_max
    return Position(*commit.source.key, commit.offset, "")


def _cut_from_below(commit: PartitionCommit, size_max: int) -> Position:
    """A map that does not fit is shortened by its incomplete ranges."""
    ranges = commit.incomplete
    metadata = encode(OffsetMap(commit.offset, commit.highest, ranges)) if ranges else ""
    while len(metadata) > size_max and ranges:
        ranges = ranges[:-1]
        metadata = encode(OffsetMap(commit.offset, commit.highest, ranges))
    return Position(*commit.source.key, commit.offset, metadata)


def _one_too_many(commit: PartitionCommit, size_max: int) -> Position:
    """The map says complete of one offset above the highest."""
    map_ = OffsetMap(commit.offset, commit.highest + 1, commit.incomplete)
    metadata = encode(map_) if commit.incomplete else ""
    return Position(*commit.source.key, commit.offset, metadata if len(metadata) <= size_max else "")


def _beyond_log_end(metadata: str, base: int, *, log_end: int | None = None) -> OffsetMap:
    del log_end
    return decode(metadata, base)


def _final_only_changed(engine: Engine, keys: Iterable[PartitionKey]) -> list[PartitionCommit]:
    return engine.commits(keys)


def _unfenced_command(owner: Owner, key: PartitionKey, heard: int) -> bool:
    del owner, key, heard
    return True


def _fenced_by_key_alone(owner: Owner, key: PartitionKey, heard: int) -> bool:
    del heard
    return key in owner.member.positions


# Ledger


def _map_ignored(ledger: Ledger, offset: int) -> bool:
    if offset <= ledger.delivered:
        return False
    ledger.delivered = offset
    if offset - 1 not in ledger._incomplete:
        ledger._gaps += 1
    ledger._incomplete[offset] = None
    return True


def _map_kept(ledger: Ledger) -> None:
    """The log began anew, and the map is believed."""
    del ledger


def _gone_kept(ledger: Ledger, offset: int) -> None:
    """What is gone from the log is waited for."""
    while ledger._expected and ledger._expected[-1] < offset:
        ledger._expected.pop()


# Assignments

_revoke = Engine.revoke
_close = Engine.close
_settle = Engine._settle


def _completions_count(engine: Engine, task: Task) -> None:
    """A completion of an old assignment counts for the present one."""
    present = engine.partitions.get(task.partition.key)
    if not task.partition.live and present is not None:
        present.ledger.complete(task.record.offset)
    _settle(engine, task)


def _revoked_lives(engine: Engine, keys: Iterable[PartitionKey]) -> None:
    keys = list(keys)
    partitions = [engine.partitions[key] for key in keys if key in engine.partitions]
    _revoke(engine, keys)
    for partition in partitions:
        partition.live = True


def _not_closed(engine: Engine, keys: Iterable[PartitionKey]) -> None:
    """Partitions that are to be given up go on handing out."""
    del engine, keys


def _parked_forgotten(engine: Engine, keys: Iterable[PartitionKey]) -> None:
    keys = list(keys)
    for key in keys:
        if key in engine.partitions:
            engine.partitions[key].parked.clear()
    _close(engine, keys)


def _nothing_removed(heap: DelayHeap) -> list[Task]:
    del heap
    return []


_assign = Engine.assign


def _shards_forgotten(engine: Engine, key: PartitionKey, ledger: Ledger) -> Partition:
    engine._shards.pop(key, None)
    return _assign(engine, key, ledger)


# Shards


def _released_before_acknowledgement(executor: Executor, task: Task) -> None:
    """The key is given on while the results are on their way."""
    engine = executor.member.engine
    engine.await_acknowledgement()
    executor.member.producing.append(task)
    if task.shard is not None and (following := release(task, task.partition.shards)) is not None:
        engine._ready.append(following)
        task.shard = None


_retry = Engine.retry


def _released_on_retry(engine: Engine, task: Task, due: float, *, produced: bool = False) -> None:
    if task.shard is not None and task.group is None and task.partition.shards.get(task.shard):
        following = release(task, task.partition.shards)
        task.shard = None
        if following is not None:
            engine._ready.append(following)
    _retry(engine, task, due, produced=produced)


def _released_by_the_first(engine: Engine, task: Task, group: Group) -> bool:
    """A batch of one key gives the key on with its first record."""
    del engine
    first = group.pending > 0
    group.pending = 0
    task.group = None
    if not first:
        task.shard = None
    return True


def _retry_loses_the_rest(engine: Engine, task: Task, group: Group) -> bool:
    """Of a batch, only the first record that failed is tried again."""
    group.pending -= 1
    task.group = None
    if group.pending:
        return False
    if not group.failed or not task.partition.open:
        return True
    group.failed.sort(key=itemgetter(0))
    engine._retries.push(group.failed[0][1], group.failed[0][2])
    return False


# Bounds


def _never_paused(engine: Engine) -> Flow:
    del engine
    return Flow([], [], wanted=True)


def _never_resumed(engine: Engine) -> Flow:
    return _flow(engine)._replace(resume=[])


_flow = Engine.flow
_take = Engine.take


def _one_over_the_limit(engine: Engine, now: float) -> Task | None:
    engine.limit += 1
    try:
        return _take(engine, now)
    finally:
        engine.limit -= 1


def _only_when_half_empty(engine: Engine, partition: Partition) -> None:
    """A record that was held back waits although it has become a gap of the map."""
    ledger, maps = partition.ledger, engine.maps
    if ledger.gaps <= maps.gaps // 2 or ledger.span <= maps.span // 2:
        _unpark(engine, partition)


_unpark = Engine._unpark


def _never_free(maps: MapBounds, offset: int, ledger: Ledger) -> bool:
    """Only the map's lower half frees what was held back for its reach."""
    return offset <= ledger.highest and maps.reach > 0


def _still_producing(engine: Engine, task: Task) -> None:
    engine._settle(task)


def _failed_delivery_is_done(executor: Executor) -> None:
    member, world = executor.member, executor.member.world
    if member.transactions is not None or world.calm or not world.dice.chance(world.plan.undelivered):
        _acknowledge_one(executor)
        return
    task = member.producing.pop(0)
    executor._free(task)
    member.engine.acknowledge(task)


_acknowledge_one = Executor.acknowledge_one


def _no_last_commit(loop: Loop) -> None:
    """Partitions are given up without a last commit."""
    for drain in loop._drains:
        drain.commits = []
    loop._drains = []


def _pause_kept(owner: Owner, key: PartitionKey) -> None:
    """Nobody resumes a partition that was paused when it was given up, and comes back."""


def _never_woken(engine: Engine, now: float) -> int:
    """Retries that are due wait for the next one."""
    due = engine._retries.pop_due(now)
    engine._ready.extendleft(reversed(due[:1]))
    return len(due)


def _taken_for_repeats(engine: Engine, key: PartitionKey, records: Sequence[Record], now: float = 0.0) -> bool:
    """What a log that began anew brings has been delivered before."""
    if (partition := engine.partitions.get(key)) is not None:
        delivered = partition.ledger.delivered
        records = [record for record in records if record.offset > delivered]
    return _offer(engine, key, records, now)


_offer = Engine.offer


PLANTED = (
    Planted("commits the highest completed offset", Ledger, "committable", property(_highest)),
    Planted("forgets that a commit failed", Engine, "committed", _failed_is_forgotten),
    Planted("takes a commit's acknowledgement for the present state", Engine, "committed", _acknowledged_is_clean),
    Planted("commits without the map", positions, "to_commit", _no_map),
    Planted("cuts incomplete ranges off a long map", positions, "to_commit", _cut_from_below),
    Planted("map reaches one offset too far", positions, "to_commit", _one_too_many),
    Planted("believes a map that ends beyond the log", positions, "decode", _beyond_log_end),
    Planted("believes the map of a log that began anew", Ledger, "_forget_map", _map_kept),
    Planted("takes a log that began anew for repeats", Engine, "offer", _taken_for_repeats),
    Planted("handles again what the map calls complete", Ledger, "deliver", _map_ignored),
    Planted("waits for records that are gone from the log", Ledger, "_forget_expected", _gone_kept),
    Planted("gives partitions up without a last commit", Loop, "_answer_drains", _no_last_commit),
    Planted("last commit repeats nothing that is in flight", Engine, "final_commits", _final_only_changed),
    Planted("commits and pauses for revoked assignments", Owner, "valid", _unfenced_command),
    Planted("takes an old assignment's command for the new one's", Owner, "valid", _fenced_by_key_alone),
    Planted("keeps the pause of an assignment that is over", Owner, "unpause", _pause_kept),
    Planted("counts completions of a revoked assignment", Engine, "_settle", _completions_count),
    Planted("revoked partition stays alive", Engine, "revoke", _revoked_lives),
    Planted("hands out from a closing partition", Engine, "close", _not_closed),
    Planted("forgets parked records when it closes", Engine, "close", _parked_forgotten),
    Planted("keeps retries of closed partitions", DelayHeap, "remove_closed", _nothing_removed),
    Planted("forgets held keys when a partition comes back", Engine, "assign", _shards_forgotten),
    Planted(
        "gives a key on before its results are acknowledged", Executor, "_results", _released_before_acknowledgement
    ),
    Planted("gives a key on when its record is retried", Engine, "retry", _released_on_retry),
    Planted("gives a batch's key on with its first record", Engine, "_leave", _released_by_the_first),
    Planted("loses all but one failed record of a batch", Engine, "_leave", _retry_loses_the_rest),
    Planted("never pauses", Engine, "flow", _never_paused),
    Planted("never resumes", Engine, "flow", _never_resumed),
    Planted("runs one more than allowed", Engine, "take", _one_over_the_limit),
    Planted("never lets out of reach what was held back", MapBounds, "free", _never_free),
    Planted("keeps parked what has become a gap", Engine, "_unpark", _only_when_half_empty),
    Planted("never counts an acknowledgement", Engine, "acknowledge", _still_producing),
    Planted("takes a failed delivery for done", Executor, "acknowledge_one", _failed_delivery_is_done),
    Planted("loses retries that are due together", Engine, "wake_retries", _never_woken),
    *(Planted(*bug) for bug in BUGS),
)
