"""Reconciles one ParallelConsumer: observe, decide, act, report, until nothing differs.

Invariants: it acts on what it has just read, never on what an event said; every step may be the last before a crash, and
the next reconcile goes on from there; when nothing differs it sends no mutating request.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pydantic import ValidationError

from parallel_consumer_operator.api import Identity, ParallelConsumer, ParallelConsumerStatus, Reason
from parallel_consumer_operator.desired import Children, render_children
from parallel_consumer_operator.desired.naming import Manifest, content_hash
from parallel_consumer_operator.desired.refusals import refusals
from parallel_consumer_operator.errors import ForbiddenError, OperatorError, RefusedError
from parallel_consumer_operator.kube import Key, Kube
from parallel_consumer_operator.pods import Pod
from parallel_consumer_operator.reconcile.act import ActMemory, apply_children, nudge_pods
from parallel_consumer_operator.reconcile.members import MemberReader
from parallel_consumer_operator.reconcile.observe import Observation, foreign_children, observe
from parallel_consumer_operator.reconcile.report import Outcome, refused_status, status_of
from parallel_consumer_operator.reconcile.windows import WindowCutter, WindowMemory
from parallel_consumer_operator.reconcile.writing import StatusWriter, WriteMemory
from parallel_consumer_operator.rollout import next_restart
from parallel_consumer_operator.scaling import Sizes, plan_sizes
from parallel_consumer_operator.windows.model import Standing
from parallel_consumer_runtime.settings import KIND, MemberStatus, explain

UNSETTLED_INTERVAL_S = 1.0
"""How soon an object is looked at again after something was changed, and while pods leave."""
MOVING_INTERVAL_S = 5.0
"""How soon while pods are missing, not ready or silent: that they come is an event, which may be lost."""
REFUSED_INTERVAL_S = 10.0
"""How soon a child that the server refuses is tried again, and a name that is taken looked at: nobody tells when that ends."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Children that the server did not take."""

    wish: str
    """Their hash: other children are tried at once."""
    words: str
    until_s: float
    """On the monotonic clock."""


@dataclass(frozen=True, slots=True)
class ScaleIn:
    """Pods are to leave."""

    wanted: int
    """The fewest that were wanted."""
    since_s: float
    """On the monotonic clock."""


@dataclass(slots=True)
class Memory:
    """What is remembered of one object between reconciles. Losing it is safe."""

    acts: ActMemory = field(default_factory=ActMemory)
    writes: WriteMemory = field(default_factory=WriteMemory)
    windows: WindowMemory = field(default_factory=WindowMemory)
    consumer: ParallelConsumer | None = None
    """As it was when its windows were last looked at."""
    standings: dict[str, Standing] = field(default_factory=dict[str, Standing])
    """How the windows of each entry stood."""
    scale_in: ScaleIn | None = None
    refusal: Refusal | None = None
    said: str | None = None
    """The refusal that the log tells of already."""
    pods: list[Pod] = field(default_factory=list[Pod])
    figures: object = None
    """What the last reading of the pods came to; a sample that differs asks for a reconcile."""


class Reconciler:
    """Makes the world as the objects wish. One key at a time per object; the queue sees to that.

    Args:
        kube: the API server.
        reader: how pods are asked.
        writer: how statuses are written.
        clock: the monotonic clock, seconds.
        now: the wall clock.
        wake: told of an object that is to be looked at now.
    """

    def __init__(
        self,
        kube: Kube,
        reader: MemberReader,
        writer: StatusWriter,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        *,
        wake: Callable[[Key], None] = lambda _: None,
    ) -> None:
        self._windows = WindowCutter(kube, reader, wake, lambda: now().timestamp())
        self._kube = kube
        self._reader = reader
        self._writer = writer
        self._clock = clock
        self._now = now
        self._memories: dict[Key, Memory] = {}

    @property
    def known(self) -> list[Key]:
        """The objects that were there when last looked at."""
        return list(self._memories)

    async def reconcile(self, key: Key) -> float | None:
        """Bring one object a step further.

        Returns:
            Seconds after which to come again even without an event; None when all is settled.

        Raises:
            OperatorError: the API server did not play along; try again later.
        """
        manifest = await self._kube.get(KIND, key.namespace, key.name)
        if manifest is None or "deletionTimestamp" in manifest["metadata"]:
            self._memories.pop(key, None)  # children go by their owner references
            return None
        memory = self._memories.setdefault(key, Memory())
        seen = await observe(self._kube, self._reader, Identity.of(manifest), self._now())
        memory.pods, memory.figures = seen.pods, figures_of(seen.members)
        try:
            consumer = ParallelConsumer.parse(manifest)
        except ValidationError as error:
            return await self._refuse(manifest, seen, memory, Reason.SPEC_REFUSED, explain(error, "spec"))
        if problems := refusals(consumer.spec):
            return await self._refuse(manifest, seen, memory, Reason.TEMPLATE_REFUSED, problems)
        if foreign := foreign_children(consumer.identity, seen.children):
            taken = [f"{name} belongs to someone else; rename one" for name in foreign]
            held_s = await self._refuse(manifest, seen, memory, Reason.NAME_TAKEN, taken)
            return min(held_s or REFUSED_INTERVAL_S, REFUSED_INTERVAL_S)
        return await self._converge(manifest, consumer, seen, memory)

    def run_ended(self, key: Key) -> None:
        """What was read of an object's windows is not so any more."""
        if (memory := self._memories.get(key)) is not None:
            memory.windows.known.clear()

    async def sample(self, key: Key) -> bool:
        """Ask the pods of one object, without a word to the API server. Return whether the status would say so."""
        memory = self._memories.get(key)
        if memory is None or not memory.pods:
            return False
        members = await self._reader.read(memory.pods)
        if figures_of(members) != memory.figures:
            return True
        # Figures may stand still while offsets move: as many are finished as come.
        consumer = memory.consumer
        return consumer is not None and self._windows.due(consumer, memory.pods, members, memory.windows)

    async def _converge(
        self, manifest: Manifest, consumer: ParallelConsumer, seen: Observation, memory: Memory
    ) -> float | None:
        owner, spec = consumer.identity, consumer.spec
        sizes = self._sizes(consumer, seen, memory)
        children = render_children(owner, spec, wanted=sizes.wanted, existing=sizes.existing)
        try:
            applied = await self._apply(children, seen, memory)
        except (RefusedError, ForbiddenError) as error:
            held_s = await self._refuse(manifest, seen, memory, Reason.CHILD_REFUSED, [str(error)])
            return min(held_s or REFUSED_INTERVAL_S, REFUSED_INTERVAL_S)
        memory.said = None
        restarted, nudge_due_s, failure = None, None, None
        try:
            restarted = await self._roll(owner, seen, sizes, children.template_hash, children.resources_hash, applied)
            nudge_due_s = await nudge_pods(self._kube, owner, children.live.revision, seen, memory.acts, self._clock())
        except OperatorError as error:
            failure = error  # raised below: what pods report is told all the same
        standings, window_s = dict[str, Standing](), None
        memory.consumer = consumer if spec.spark_jobs else None
        if spec.spark_jobs:
            try:
                standings, window_s = await self._windows.cut(consumer, seen.pods, seen.members, memory.windows)
            except OperatorError as error:
                failure = failure or error
                standings = memory.standings
        memory.standings = standings
        outcome = Outcome(sizes, children, applied, restarted, spec.processing.paused, standings)
        status = status_of(owner, seen, outcome)
        held_s = await self._writer.write(owner, consumer.status, status, memory.writes, self._clock())
        if failure is not None:
            raise failure
        waits = [wait for wait in (nudge_due_s, held_s, window_s) if wait is not None]
        if applied or restarted or sizes.scaling_in:
            waits.append(UNSETTLED_INTERVAL_S)
        if _is_moving(seen, sizes):
            waits.append(MOVING_INTERVAL_S)
        return min(waits, default=None)

    async def _apply(self, children: Children, seen: Observation, memory: Memory) -> list[str]:
        """Apply what differs; what was refused a moment ago is refused again without asking."""
        wish, now_s = content_hash(children.manifests), self._clock()
        refusal = memory.refusal
        if refusal is not None and refusal.wish == wish and now_s < refusal.until_s:
            raise RefusedError(refusal.words)
        memory.refusal = None
        try:
            return await apply_children(self._kube, children.manifests, seen.children, memory.acts)
        except (RefusedError, ForbiddenError) as error:
            memory.refusal = Refusal(wish, str(error), now_s + REFUSED_INTERVAL_S)
            raise

    def _sizes(self, consumer: ParallelConsumer, seen: Observation, memory: Memory) -> Sizes:
        now_s, wanted = self._clock(), consumer.spec.replicas
        began = memory.scale_in
        if began is None or wanted < began.wanted:
            began = ScaleIn(wanted, now_s)  # those who are told only now have their whole time too
        sizes = plan_sizes(
            wanted=wanted,
            current=seen.stateful_replicas,
            pods=seen.pods,
            members=seen.members,
            waited_s=now_s - began.since_s,
            bound_s=consumer.spec.processing.drain_timeout + consumer.spec.kafka.session_timeout,
        )
        memory.scale_in = began if sizes.scaling_in else None
        return sizes

    async def _roll(  # noqa: PLR0917 - one call, in the order of the decision
        self,
        owner: Identity,
        seen: Observation,
        sizes: Sizes,
        template_hash: str,
        resources_hash: str,
        applied: list[str],
    ) -> str | None:
        if "StatefulSet" in applied or sizes.scaling_in or not seen.template_known:
            return None  # a pod deleted now could come back with the template of before
        pod = next_restart(
            seen.pods, existing=sizes.existing, template_hash=template_hash, resources_hash=resources_hash
        )
        if pod is None:
            return None
        _log.info("%s/%s: restarting %s, whose template is outdated", owner.namespace, owner.name, pod.name)
        await self._kube.delete_pod(owner.namespace, pod.name, pod.uid)
        return pod.name

    async def _refuse(
        self, manifest: Manifest, seen: Observation, memory: Memory, reason: Reason, problems: list[str]
    ) -> float | None:
        owner, words = Identity.of(manifest), "; ".join(problems)
        before = ParallelConsumerStatus.of(manifest)
        after = refused_status(owner, before, seen, reason, words)
        if memory.said != words:
            memory.said = words
            _log.warning("%s/%s: %s: %s", owner.namespace, owner.name, reason, words)
        return await self._writer.write(owner, before, after, memory.writes, self._clock())


def figures_of(members: dict[str, MemberStatus]) -> object:
    """Return what of the pods' reports the status shows; equal readings need no reconcile."""
    return {
        name: (member.state, member.revision, member.concurrency, member.in_flight, member.lag, member.kafka_reachable)
        for name, member in members.items()
    }


def _is_moving(seen: Observation, sizes: Sizes) -> bool:
    """Whether pods are missing, too many, not ready or silent, or a template is not yet known to who makes them."""
    if len(seen.pods) != sizes.existing or not seen.template_known:
        return True
    return any(not pod.ready or pod.name not in seen.members for pod in seen.pods)
