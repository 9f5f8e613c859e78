"""Writes the status when it says something new, at most every two seconds for figures alone; tells transitions."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from parallel_consumer_operator.api import API_VERSION_OF_KIND, Identity, ParallelConsumerStatus, SparkJobStatus
from parallel_consumer_operator.conditions import settle, transitions
from parallel_consumer_operator.errors import NotFoundError, OperatorError
from parallel_consumer_operator.events import transition_event
from parallel_consumer_operator.kube import Kube

FIGURES_INTERVAL_S = 2.0

_FIGURES = {"concurrency", "in_flight", "lag", "executors", "conditions"}
"""What may wait; of the conditions only their messages."""

Status = ParallelConsumerStatus | SparkJobStatus

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class WriteMemory:
    """When the status of one object was last written."""

    written_s: float | None = None


class StatusWriter:
    """Writes statuses and their events.

    Args:
        kube: where to.
        instance: which operator says so, in events.
        now: the wall clock, for timestamps.
    """

    def __init__(self, kube: Kube, instance: str, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._kube = kube
        self._instance = instance
        self._now = now

    async def write(
        self,
        owner: Identity,
        before: Status,
        after: Status,
        memory: WriteMemory,
        now_s: float,
    ) -> float | None:
        """Write what changed.

        Returns:
            Seconds until figures that were held back may be written, None when nothing was held back.

        Raises:
            OperatorError: the API server did not take the status.
        """
        now = self._now()
        after = after.model_copy(update={"conditions": settle(before.conditions, after.conditions, now)})
        if after == before:
            return None
        changes = transitions(before.conditions, after.conditions)
        if not changes and _same_but_figures(before, after) and memory.written_s is not None:
            wait_s = memory.written_s + FIGURES_INTERVAL_S - now_s
            if wait_s > 0:
                return wait_s
        try:
            await self._kube.apply_status(
                {
                    "apiVersion": API_VERSION_OF_KIND,
                    "kind": owner.kind,
                    "metadata": {"name": owner.name, "namespace": owner.namespace, "uid": owner.uid},
                    "status": after.to_manifest(),
                }
            )
        except NotFoundError:
            return None  # deleted meanwhile
        memory.written_s = now_s
        for change in changes:
            if (event := transition_event(owner, change, now, self._instance)) is not None:
                await self._tell(event)
        return None

    async def _tell(self, event: dict[str, object]) -> None:
        try:
            await self._kube.create(event)
        except OperatorError as error:
            # The status already says it; an event is a courtesy.
            _log.warning("an event was not written: %s", error)


def _same_but_figures(before: Status, after: Status) -> bool:
    return before.model_dump(exclude=_FIGURES) == after.model_dump(exclude=_FIGURES)
