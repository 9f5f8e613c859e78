"""Commits on their way: applied, refused, or nobody knows; and their answers, which may come late.

Requests of one process travel over one connection, so they are applied in order; a synchronous one waits for those before.
"""

from typing import TYPE_CHECKING

from parallel_consumer_runtime.kafka import positions
from tests.support.simulation.checking import NoZombies
from tests.support.simulation.group import TOO_LARGE, Entry
from tests.support.simulation.request import Planned, Request

if TYPE_CHECKING:
    from tests.support.simulation.member import Member

METADATA_SIZE_MIN = 8
"""The real floor is 64; a small one lets short logs overflow it."""


def send(member: "Member", planned: Planned, current: Planned) -> None:
    """Commit asynchronously, as `ConsumerOwner._commit_async`; `planned` is what the loop hears of again."""
    world = member.world
    entries = _entries(member, current)
    NoZombies.sent(member, entries)
    member.commits_sent += 1
    fate = "now" if world.calm else world.fate()
    request = Request(planned, entries, member.generation, member.commits_sent, None, applied=False)
    if fate == "apply late":
        world.note("commit applied late", member.name)
        member.requests.append(request)
        return
    flush(member)
    error = _try(member, request, fate)
    request = request._replace(applied=True, error=error)
    if fate == "acknowledge late":
        world.note("commit acknowledged late", member.name)
        member.requests.append(request)
    else:
        member.arrived.append(request)


def send_and_wait(member: "Member", planned: Planned) -> bool:
    """Commit synchronously, as `ConsumerOwner._commit_sync`. Return whether nothing went wrong."""
    if not planned:
        return True
    world = member.world
    flush(member)
    entries = _entries(member, planned)
    NoZombies.sent(member, entries)
    member.commits_sent += 1
    request = Request(planned, entries, member.generation, member.commits_sent, None, applied=False)
    error = _try(member, request, "now" if world.calm else world.fate())
    if error is not None:
        world.note("last commit failed", member.name)
    _heard(member, request._replace(error=error))
    return error is None


def answer(member: "Member", request: Request) -> None:
    """The consumer's callback: a commit ended, as `ConsumerOwner._on_commit`."""
    if request.error == TOO_LARGE:
        member.metadata_size_max = max(METADATA_SIZE_MIN, member.metadata_size_max // 2)
    _heard(member, request)


def deliver(member: "Member") -> None:
    """Let the oldest thing on a process's connection go on: a request is applied, or its answer arrives."""
    request = member.requests.popleft()
    if not request.applied:
        request = request._replace(applied=True, error=_try(member, request, "now"))
    member.arrived.append(request)


def flush(member: "Member") -> None:
    """Apply what is on the way; the answers stay there."""
    for index, request in enumerate(member.requests):
        if not request.applied:
            member.requests[index] = request._replace(applied=True, error=_try(member, request, "now"))


def _entries(member: "Member", planned: Planned) -> list[Entry]:
    size_max = member.metadata_size_max
    return [Entry(positions.to_commit(commit, size_max), commit, tenure, done) for commit, tenure, done in planned]


def _try(member: "Member", request: Request, fate: str) -> str | None:
    """Return why the commit failed, as the client is told."""
    world = member.world
    if fate == "fail" or (fate == "unknown" and world.dice.chance(0.5)):
        world.note("commit failed", member.name)
        return "the request was not sent" if fate == "fail" else "timed out"
    error = world.group.apply(member, request.generation, request.entries)
    if fate == "unknown" and error is None:
        world.note("commit applied, told as failed", member.name)
        return "timed out"
    return error


def _heard(member: "Member", request: Request) -> None:
    if request.error is None:
        member.world.note("commit acknowledged", member.name)
        if request.number < member.commit_acknowledged:
            member.world.note("commit acknowledged after a newer one", member.name)
        member.commit_acknowledged = max(request.number, member.commit_acknowledged)
    member.inbox.append((member.loop.on_committed, (request.planned, request.error)))
