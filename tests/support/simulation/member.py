"""One process of the group: its engine, and what lies between its two threads. It dies by being dropped."""

from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from parallel_consumer_runtime.core import Engine, Partition, PartitionCommit, PartitionKey, Task
from parallel_consumer_runtime.core.map_bounds import METADATA_SIZE_MAX
from tests.support.simulation.checking import OneAtATime, Tenure
from tests.support.simulation.executor import Executor
from tests.support.simulation.log import Log
from tests.support.simulation.loop import Loop
from tests.support.simulation.owner import Owner
from tests.support.simulation.request import Planned, Request
from tests.support.simulation.transactions import Transactions

if TYPE_CHECKING:
    from tests.support.simulation.world import World

Message = tuple[Callable[[Any], None], Any]
"""Who is told, and what."""


class Member:
    """State that owner thread, event loop and executor share.

    Args:
        world: where it lives.
        number: its place in the group, and so its instance id.
    """

    def __init__(self, world: "World", number: int) -> None:
        plan = world.plan
        self.world = world
        self.number = number
        world.lives += 1
        self.name = f"m{number}.{world.lives}"
        self.engine = Engine(plan.ordering, plan.bounds, plan.limit, maps=plan.maps)
        self.frozen = False
        self.blocked_until = 0.0
        """The event loop stands still, the owner thread does not."""
        self.stopping = False
        """Told to end, as by SIGTERM."""
        self.ended = False
        # Owner thread
        self.positions: dict[PartitionKey, int] = {}
        """What is assigned, and the next offset to fetch."""
        self.reading: dict[PartitionKey, Log] = {}
        """The logs that the positions are of."""
        self.paused: set[PartitionKey] = set()
        """By the client, which keeps a pause over assignments."""
        self.generation = -1
        self.wanted = True
        self.metadata_size_max = METADATA_SIZE_MAX
        if plan.metadata_max < METADATA_SIZE_MAX:
            # Near what the broker takes, or short logs would never have a map that is cut.
            self.metadata_size_max = plan.metadata_max * world.dice.pick((1, 4, 8))
        self.mail: deque[tuple[str, list[PartitionKey], int]] = deque()
        """What the coordinator tells; heard when the owner polls."""
        self.arrived: deque[Request] = deque()
        """Answers to commits; heard when the owner polls."""
        # Between the threads
        self.inbox: deque[Message] = deque()
        self.commands: deque[Message] = deque()
        self.outstanding = 0
        """Batches handed over and not taken."""
        # Network
        self.requests: deque[Request] = deque()
        """Commits on their way to the broker, or their answers back."""
        self.commits_sent = self.commit_acknowledged = 0
        # Event loop
        self.tenures: dict[Partition, Tenure] = {}
        self.running: list[Task] = []
        self.slow: list[Task] = []
        """With the handler until the safety phase ends."""
        self.producing: list[Task] = []
        """Tasks whose results or dead letter are on their way."""
        self.parked: dict[int, Task] = {}
        """What the engine held back when it was last looked at."""
        self.buffered_before = 0
        """What was buffered when bounds were lowered."""
        self.one_at_a_time = OneAtATime()
        transactional = world.transactional
        self.transactions = None if transactional is None else Transactions(self, transactional)
        self.owner = Owner(self)
        self.loop = Loop(self)
        self.executor = Executor(self)

    def tenure_of(self, task: Task) -> Tenure:
        """Return what is known of the assignment, and of the log, that a task belongs to."""
        return self.tenures[task.partition].of(task.record.value)

    def planned(self, commits: Iterable[PartitionCommit]) -> Planned:
        """Return commits with what is known of their assignments as they are planned."""
        tenures = self.tenures
        return [(commit, tenures[commit.source], len(tenures[commit.source].done)) for commit in commits]

    @property
    def busy(self) -> bool:
        """Whether anything is on its way in this process, or with it."""
        return bool(
            self.inbox
            or self.commands
            or self.mail
            or self.arrived
            or self.requests
            or self.running
            or self.producing
            or self.owner.draining
            or self.owner.looking_up
            or (self.transactions is not None and self.transactions.busy)
        )
