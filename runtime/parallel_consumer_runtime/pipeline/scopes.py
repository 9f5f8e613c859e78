"""What processors have instances for, and when each of them ends: in use until its last user is done."""

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Protocol, Self, runtime_checkable

from parallel_consumer_runtime.handlers import Record


class Scope(Enum):
    """What a processor has one instance for."""

    PROCESS = auto()
    """The whole process: the instance is used by many records at once."""
    PARTITION = auto()
    """Each assigned partition, for as long as it is assigned."""
    WORKER = auto()
    """Each coroutine or thread that calls handlers: one record at a time."""


@runtime_checkable
class ScopedHandler(Protocol):
    """A handler that wants to know when what it was called for has ended. The runtime calls these."""

    def end_partition(self, topic: str, partition: int) -> None:
        """A partition is no longer ours. On the event loop's thread."""
        ...

    def end_worker(self) -> None:
        """The calling coroutine or thread calls no handler any more."""
        ...

    async def end(self) -> None:
        """Nothing is called any more; returns when all is closed. On the event loop's thread."""
        ...


@dataclass(eq=False)
class Instance:
    """One processor, and who uses it."""

    processor: Any
    users: int = 0
    ended: bool = False


@dataclass(eq=False)
class _Stage:
    """One processor's instances. Safe for threads."""

    factory: Callable[[], Any]
    scope: Scope
    instances: dict[Hashable, Instance] = field(default_factory=dict[Hashable, Instance])
    lock: threading.Lock = field(default_factory=threading.Lock)

    def acquire(self, record: Record, worker: Hashable) -> Instance:
        """Return the instance for a record, made when there is none, in use until it is released."""
        name: Hashable = None
        if self.scope is Scope.PARTITION:
            name = (record.topic, record.partition)
        elif self.scope is Scope.WORKER:
            name = worker
        with self.lock:
            instance = self.instances.get(name)
            if instance is None:
                instance = self.instances[name] = Instance(self.factory())
            instance.users += 1
        return instance

    def release(self, instance: Instance) -> Instance | None:
        """End one use. Return the instance when it is to be closed now."""
        with self.lock:
            instance.users -= 1
            return instance if instance.ended and instance.users == 0 else None

    def end(self, name: Hashable) -> Instance | None:
        """End an instance's scope. Return it when it is to be closed now, None when its last user will."""
        with self.lock:
            instance = self.instances.pop(name, None)
            if instance is None:
                return None
            instance.ended = True
            return instance if instance.users == 0 else None

    def names(self) -> list[Hashable]:
        """Return what there are instances for."""
        with self.lock:
            return list(self.instances)


class Stages:
    """The processors of a pipeline, in order."""

    def __init__(self) -> None:
        self.stages: list[_Stage] = []

    def add(self, factory: Callable[[], Any], scope: Scope = Scope.PROCESS) -> Self:
        """Add a processor after those that are there.

        Args:
            factory: makes an instance; a class, or a function without arguments.
            scope: what there is one instance for.
        """
        self.stages.append(_Stage(factory, scope))
        return self

    def end_partition(self, topic: str, partition: int) -> None:
        """See ScopedHandler."""
        self._end(Scope.PARTITION, (topic, partition))

    def _end(self, scope: Scope, name: Hashable) -> None:
        for stage in self.stages:
            if stage.scope is scope and (instance := stage.end(name)) is not None:
                self._close(instance)

    def _end_all(self) -> None:
        for stage in self.stages:
            for name in stage.names():
                if (instance := stage.end(name)) is not None:
                    self._close(instance)

    def _close(self, instance: Instance) -> None:
        raise NotImplementedError
