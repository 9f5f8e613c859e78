"""`pconsumer offsets show` and `reset`: a manifest's group as it stands, and where it is to stand, dry unless told."""

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self, TextIO

from parallel_consumer_runtime.core import PartitionKey
from parallel_consumer_runtime.errors import PermanentError
from parallel_consumer_runtime.kafka.group_offsets import GroupBusyError, GroupMember, GroupOffsets
from parallel_consumer_runtime.kafka.logs import Logs
from parallel_consumer_runtime.kafka.startup import check
from parallel_consumer_runtime.local.manifest import Manifest, ManifestError, load
from parallel_consumer_runtime.replay.moves import Move, plan_moves
from parallel_consumer_runtime.replay.places import Kind, Place
from parallel_consumer_runtime.replay.standing import Standing, standing, total_lag
from parallel_consumer_runtime.replay.tables import Cell, print_json, print_rows
from parallel_consumer_runtime.settings import StaticSettings, format_duration, render_static

_SHOW_COLUMNS = {
    "topic": "TOPIC",
    "partition": "PARTITION",
    "committed": "COMMITTED",
    "logStart": "LOG-START",
    "logEnd": "LOG-END",
    "lag": "LAG",
    "incomplete": "INCOMPLETE",
    "completeAbove": "COMPLETE-ABOVE",
    "headOfLine": "HEAD-OF-LINE",
    "note": "NOTE",
}
_RESET_COLUMNS = {
    "topic": "TOPIC",
    "partition": "PARTITION",
    "from": "FROM",
    "to": "TO",
    "handledAgain": "HANDLED-AGAIN",
    "neverHandled": "NEVER-HANDLED",
    "note": "NOTE",
}


def load_manifest(path: Path, bootstrap: str | None) -> Manifest:
    """Return the manifest, with other brokers if there are any.

    Raises:
        PermanentError: with one line per problem.
    """
    try:
        manifest = load(path)
    except ManifestError as error:
        raise PermanentError(str(error)) from error
    if bootstrap is None:
        return manifest
    kafka = manifest.spec.kafka.model_copy(update={"bootstrap_servers": bootstrap})
    return manifest._replace(spec=manifest.spec.model_copy(update={"kafka": kafka}))


def choose(keys: Sequence[PartitionKey], topic: str | None, partitions: Sequence[int]) -> list[PartitionKey]:
    """Return the partitions that --topic and --partition leave.

    Raises:
        PermanentError: naming the option that fits nothing.
    """
    topics = sorted({key.topic for key in keys})
    if topic is not None and topic not in topics:
        raise PermanentError(f"--topic: the manifest does not consume {topic!r}; it consumes {', '.join(topics)}")
    if partitions and topic is None and len(topics) > 1:
        raise PermanentError(f"--partition: of which topic? Name it with --topic: {', '.join(topics)}")
    chosen = [key for key in keys if topic in {None, key.topic}]
    for partition in partitions:
        if partition not in {key.partition for key in chosen}:
            raise PermanentError(f"--partition: {chosen[0].topic} has no partition {partition}; it has {len(chosen)}")
    return [key for key in chosen if not partitions or key.partition in partitions]


class _Group:
    """A manifest's group and the logs of its topics; a context manager."""

    def __init__(self, path: Path, bootstrap: str | None) -> None:
        self.manifest = load_manifest(path, bootstrap)
        # What is written is of no interest here: those topics need not exist.
        self.settings: StaticSettings = render_static(self.manifest.name, self.manifest.spec).model_copy(
            update={"results_topic": None, "dead_letter": None, "retry_topic": None}
        )
        check(self.settings, self.manifest.name)
        self.logs = Logs(self.settings)
        self._stack = ExitStack()

    def standings(self, keys: Sequence[PartitionKey]) -> list[Standing]:
        """Return how the group stands in each partition."""
        positions = self.offsets.committed(keys)
        bounds = self.logs.bounds(keys)
        reset = self.settings.kafka.auto_offset_reset
        return [standing(key, positions[key], bounds[key], reset) for key in keys]

    def __enter__(self) -> Self:
        self.offsets = self._stack.enter_context(GroupOffsets(self.settings))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def show(path: Path, *, bootstrap: str | None, topic: str | None, as_json: bool, out: TextIO = sys.stdout) -> None:
    """Print how the manifest's group stands in each partition. Joins no group and changes nothing.

    Raises:
        RuntimeFailure: why it could not.
    """
    with _Group(path, bootstrap) as group:
        standings = group.standings(choose(group.logs.partitions(), topic, ()))
        members = group.offsets.members()
        group_id = group.settings.kafka.group_id
    rows = [_standing_row(one) for one in standings]
    lag = total_lag(standings)
    if as_json:
        named = [member._asdict() for member in members]
        print_json({"group": group_id, "members": named, "lag": lag, "partitions": rows}, out)
        return
    total = f"lag {'unknown' if lag is None else format(lag, ',')}; {_members(members) or 'no members'}"
    print_rows(_SHOW_COLUMNS, rows, f"group {group_id}", out, total=total)


def reset(
    path: Path,
    place: Place,
    *,
    bootstrap: str | None,
    topic: str | None,
    partitions: Sequence[int],
    execute: bool,
    as_json: bool,
    out: TextIO = sys.stdout,
    err: TextIO = sys.stderr,
) -> None:
    """Print where the group would be moved to; move it when told to. Maps are dropped with the old commits.

    Raises:
        RuntimeFailure: why it could not; a group with members is refused, and nothing is changed.
    """
    with _Group(path, bootstrap) as group:
        _refuse_members(group)
        keys = choose(group.logs.partitions(), topic, partitions)
        standings = group.standings(keys)
        times = group.logs.at_time(keys, place.value) if place.kind is Kind.TIME else {}
        moves = plan_moves(standings, place, times)
        positions = [move.position for move in moves if move.position is not None]
        if execute and positions:
            group.offsets.commit(positions)
        group_id = group.settings.kafka.group_id
    rows = [_move_row(move) for move in moves]
    if as_json:
        print_json({"group": group_id, "executed": execute, "partitions": rows}, out)
    else:
        print_rows(_RESET_COLUMNS, rows, f"group {group_id}", out)
    err.write(f"{_summary(moves, execute=execute)}\n")


def _refuse_members(group: _Group) -> None:
    members = group.offsets.members()
    if not members:
        return
    name, session = group.manifest.name, format_duration(group.settings.kafka.session_timeout)
    msg = (
        f"the group {group.settings.kafka.group_id!r} is running, so that nothing was changed: {_members(members)}; scale it to 0 "
        f"first (kubectl scale pcon {name} --replicas 0); a member that ended is let go within {session}"
    )
    raise GroupBusyError(msg)


def _members(members: Sequence[GroupMember]) -> str:
    return ", ".join(f"{member.name} ({member.host})" for member in members)


def _summary(moves: Sequence[Move], *, execute: bool) -> str:
    again, never = sum(move.handled_again for move in moves), sum(move.never_handled for move in moves)
    means = f"{again:,} completed offsets {{}} handled again, {never:,} incomplete ones never"
    if execute:
        moved = sum(move.after is not None for move in moves)
        return f"{moved} partitions moved: {means.format('will be')}"
    return f"nothing was changed; with --execute {means.format('would be')}"


def _standing_row(one: Standing) -> dict[str, Cell]:
    return {
        "topic": one.key.topic,
        "partition": one.key.partition,
        "committed": one.committed,
        "logStart": one.log.start,
        "logEnd": one.log.end,
        "lag": one.lag,
        "incomplete": one.incomplete,
        "completeAbove": one.complete_above,
        "headOfLine": one.head_of_line,
        "note": one.note,
    }


def _move_row(move: Move) -> dict[str, Cell]:
    return {
        "topic": move.key.topic,
        "partition": move.key.partition,
        "from": move.before,
        "to": move.after,
        "handledAgain": move.handled_again,
        "neverHandled": move.never_handled,
        "note": move.note,
    }
