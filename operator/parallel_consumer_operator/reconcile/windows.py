"""Cuts one consumer's windows: reads the ledger, the runs, the pods and the brokers, in this order, and takes the step that is decided.

The order is part of the promise (`windows/cutting.py`). Between steps everything may be read again, so that any of them may
be the last before a crash.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from parallel_consumer_operator.api import Identity, ParallelConsumer
from parallel_consumer_operator.desired.naming import Manifest
from parallel_consumer_operator.desired.windows import (
    entry_of,
    ledger_manifest,
    ledger_name,
    ledger_of,
    run_manifest,
    run_of,
    runs_selector,
)
from parallel_consumer_operator.errors import ConflictError
from parallel_consumer_operator.kube import Key, Kube
from parallel_consumer_operator.pods import Pod
from parallel_consumer_operator.reconcile.members import MemberReader
from parallel_consumer_operator.reconcile.observe import owned
from parallel_consumer_operator.reconcile.report import lag_of
from parallel_consumer_operator.untyped import at
from parallel_consumer_operator.windows import decide
from parallel_consumer_operator.windows.model import (
    Ask,
    Create,
    Decision,
    Delete,
    Entry,
    Keep,
    Ledger,
    Place,
    Run,
    Sample,
    Standing,
    TopicOffsets,
    Wait,
)
from parallel_consumer_runtime.settings import MemberStatus
from parallel_consumer_runtime.settings.offsets import OffsetsAnswer
from parallel_consumer_runtime.settings.spark import SPARK_JOB_KIND
from parallel_consumer_runtime.settings.spark_entry import SparkJobEntry

STEPS_MAX = 12
"""In one round: a window that is due takes three; the rest comes in the next round."""
BUSY_INTERVAL_S = 1.0
FORGOTTEN_AFTER_S = 10.0
"""What was read of ledger and runs is read again after so long, even if nobody said that it changed."""
UNREADABLE = "Unreadable"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Known:
    """What was read last of one entry."""

    ledger: Ledger | None
    runs: tuple[Run, ...]
    at: float


@dataclass(slots=True)
class WindowMemory:
    """What is remembered between rounds; losing it costs a few requests."""

    known: dict[str, Known] = field(default_factory=dict[str, Known])
    """By entry."""
    asked_at: dict[str, float] = field(default_factory=dict[str, float])


class WindowCutter:
    """Belongs to one reconciler; one consumer at a time.

    Args:
        kube: the API server.
        reader: how pods are asked.
        wake: told of a SparkJob whose time has come, so that it need not wait for an event.
        now: Unix seconds.
    """

    def __init__(self, kube: Kube, reader: MemberReader, wake: Callable[[Key], None], now: Callable[[], float]) -> None:
        self._kube = kube
        self._reader = reader
        self._wake = wake
        self._now = now

    async def cut(
        self, consumer: ParallelConsumer, pods: Sequence[Pod], members: dict[str, MemberStatus], memory: WindowMemory
    ) -> tuple[dict[str, Standing], float | None]:
        """Bring every entry a step further.

        Returns:
            How each stands, and after how many seconds to come again; None when nothing is waited for.

        Raises:
            OperatorError: the API server did not play along; try again later.
        """
        standings: dict[str, Standing] = {}
        waits: list[float] = []
        for wished in consumer.spec.spark_jobs:
            entry = entry_of(consumer.identity, consumer.spec, wished)
            wait = self._guess(entry, pods, members, memory) or await self._converge(
                consumer.identity, wished, entry, pods, memory
            )
            standings[wished.name] = wait.standing
            if wait.again_s is not None:
                waits.append(wait.again_s)
        return standings, min(waits, default=None)

    def due(
        self, consumer: ParallelConsumer, pods: Sequence[Pod], members: dict[str, MemberStatus], memory: WindowMemory
    ) -> bool:
        """Whether something is to be done by what pods report now, without a word to anybody."""
        entries = (entry_of(consumer.identity, consumer.spec, wished) for wished in consumer.spec.spark_jobs)
        return any(self._guess(entry, pods, members, memory) is None for entry in entries)

    def _guess(
        self, entry: Entry, pods: Sequence[Pod], members: dict[str, MemberStatus], memory: WindowMemory
    ) -> Wait | None:
        """Return what is waited for by what was read before: reports come every second, and most change nothing."""
        known, now = memory.known.get(entry.name), self._now()
        if known is None or now - known.at > FORGOTTEN_AFTER_S:
            return None
        decision = decide(entry, known.ledger, known.runs, self._sample(entry, pods, members, memory))
        return decision if isinstance(decision, Wait) else None

    async def _converge(
        self, owner: Identity, wished: SparkJobEntry, entry: Entry, pods: Sequence[Pod], memory: WindowMemory
    ) -> Wait:
        for _ in range(STEPS_MAX):
            found = await self._kube.get("ConfigMap", owner.namespace, ledger_name(owner.name, entry.name))
            runs, problem = await self._runs(owner, entry)
            if problem is not None:
                return Wait(problem, FORGOTTEN_AFTER_S)
            try:
                ledger = None if found is None else ledger_of(found)
            except ValueError as error:
                return Wait(Standing(UNREADABLE, str(error)), FORGOTTEN_AFTER_S)
            memory.known[entry.name] = Known(ledger, runs, self._now())
            decision = await self._decide(entry, ledger, runs, pods, memory)
            if isinstance(decision, Wait):
                return decision
            try:
                await self._act(owner, wished, entry, decision, found)
            except ConflictError:
                _log.info(
                    "%s/%s: the windows of %s were changed by somebody else", owner.namespace, owner.name, entry.name
                )
        return Wait(Standing("Busy", "much is to be done"), BUSY_INTERVAL_S)

    async def _decide(
        self, entry: Entry, ledger: Ledger | None, runs: Sequence[Run], pods: Sequence[Pod], memory: WindowMemory
    ) -> Decision:
        sample = self._sample(entry, pods, await self._reader.read(pods), memory)
        decision = decide(entry, ledger, runs, sample)
        if isinstance(decision, Ask):
            memory.asked_at[entry.name] = self._now()
            answer = await self._reader.offsets(pods)
            asked = (
                replace(sample, silent="no pod reaches the brokers")
                if answer is None
                else _with_broker(entry, sample, answer)
            )
            decision = decide(entry, ledger, runs, asked)
        return decision

    async def _runs(self, owner: Identity, entry: Entry) -> tuple[tuple[Run, ...], Standing | None]:
        """Return the entry's runs, live; or why they cannot be told."""
        found = await self._kube.list(SPARK_JOB_KIND, owner.namespace, runs_selector(owner, entry.name))
        runs: list[Run] = []
        for manifest in found:
            if not owned(owner, manifest):
                continue
            run = run_of(manifest)
            if run is None:
                name = at(manifest, "metadata", "name")
                return (), Standing(UNREADABLE, f"SparkJob {name} cannot be read: it was written by another version")
            if "deletionTimestamp" not in manifest["metadata"]:
                runs.append(run)
        return tuple(runs), None

    async def _act(
        self, owner: Identity, wished: SparkJobEntry, entry: Entry, decision: Decision, found: Manifest | None
    ) -> None:
        if isinstance(decision, Keep):
            version = None if found is None else str(at(found, "metadata", "resourceVersion"))
            manifest = ledger_manifest(owner, entry.name, decision.ledger, version)
            await (self._kube.create(manifest) if found is None else self._kube.replace(manifest))
            if decision.ledger.open is not None:
                run = run_manifest(owner, wished, decision.ledger.open.window)["metadata"]["name"]
                self._wake(Key(owner.namespace, run, SPARK_JOB_KIND))
        elif isinstance(decision, Create):
            await self._kube.create(run_manifest(owner, wished, decision.window))
        elif isinstance(decision, Delete):
            for run in decision.runs:
                await self._kube.delete(SPARK_JOB_KIND, owner.namespace, run.name, run.uid)

    def _sample(
        self, entry: Entry, pods: Sequence[Pod], members: dict[str, MemberStatus], memory: WindowMemory
    ) -> Sample:
        committed: dict[Place, int | None] = {}
        produced: dict[Place, int] = {}
        for member in members.values():
            for part in member.partitions:
                committed[Place(part.topic, part.partition)] = part.committed
            for end in member.produced:
                place = Place(end.topic, end.partition)
                produced[place] = max(produced.get(place, 0), end.end)
        return Sample(
            at=self._now(),
            committed=committed,
            produced=produced,
            lag=lag_of(list(members.values()), len(pods)),
            asked_at=memory.asked_at.get(entry.name, 0.0),
            silent="" if members else "no pod reports",
        )


def _with_broker(entry: Entry, sample: Sample, answer: OffsetsAnswer) -> Sample:
    topics = {
        topic.name: TopicOffsets(topic.id, {part.partition: (part.start, part.end) for part in topic.partitions})
        for topic in answer.topics
        if topic.role is entry.source
    }
    return replace(sample, broker=topics)
