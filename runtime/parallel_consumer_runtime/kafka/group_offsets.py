"""A group's commits, read and moved by one who is never its member: for `pconsumer offsets`."""

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any, NamedTuple, Self, TypeVar, cast

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from parallel_consumer_runtime.core import PartitionKey
from parallel_consumer_runtime.errors import TemporaryError
from parallel_consumer_runtime.kafka.config import common_config
from parallel_consumer_runtime.kafka.librdkafka import Position, commit_sync, committed
from parallel_consumer_runtime.settings import StaticSettings

TIMEOUT_S = 10.0
DEADLINE_S = 30.0
PAUSE_S = 0.1
# What a coordinator says while it loads, or moves; librdkafka waits for it under the local code.
_COORDINATOR_ON_ITS_WAY = {
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError._WAIT_COORD,  # noqa: SLF001 - librdkafka's local codes have this form
}
# What it says to one who commits without being a member, once there are members.
_NOT_OURS = {
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.STALE_MEMBER_EPOCH,
}
_Answer = TypeVar("_Answer")


class GroupMember(NamedTuple):
    """One member, as the coordinator knows it."""

    name: str
    """Its static instance id, or its client id when it has none."""
    host: str


class GroupBusyError(TemporaryError):
    """The group has members: only they may commit."""


class GroupOffsets:
    """Asks and commits for a group without joining it. One thread; a context manager; every call blocks up to 30 s.

    Args:
        settings: whose brokers and group.
    """

    def __init__(self, settings: StaticSettings) -> None:
        self._group = settings.kafka.group_id
        config = {**common_config(settings, settings.name), "log_level": 0}
        self._admin = AdminClient(config)
        self._consumer = Consumer({**config, "group.id": self._group, "enable.auto.commit": False})

    def committed(self, keys: Iterable[PartitionKey]) -> dict[PartitionKey, Position]:
        """Return what the group has committed, partition by partition; a negative offset where there is nothing.

        Raises:
            TemporaryError: the coordinator does not answer, or refuses.
        """
        wanted = [(key.topic, key.partition) for key in keys]
        found = self._insist(
            lambda: committed(self._consumer, wanted, timeout_s=TIMEOUT_S),
            f"the committed offsets of group {self._group!r} could not be read",
        )
        return {PartitionKey(one.topic, one.partition): one for one in found}

    def members(self) -> list[GroupMember]:
        """Return who is in the group now, by name.

        Raises:
            TemporaryError: the coordinator does not answer, or refuses.
        """
        what = f"the members of group {self._group!r} could not be read"
        described = self._insist(self._describe, what)
        return sorted(
            GroupMember(str(one.group_instance_id or one.client_id), str(one.host).removeprefix("/"))
            for one in described
        )

    def commit(self, positions: Sequence[Position]) -> None:
        """Move the group to these positions, all in one request.

        Raises:
            GroupBusyError: the group has members by now.
            TemporaryError: the coordinator does not answer, or refuses.
        """
        try:
            self._insist(
                lambda: commit_sync(self._consumer, positions),
                f"the offsets of group {self._group!r} could not be committed",
            )
        except TemporaryError as error:
            cause = error.__cause__
            if isinstance(cause, KafkaException) and cause.args[0].code() in _NOT_OURS:
                msg = f"the group {self._group!r} has got members meanwhile, so that nothing was changed"
                raise GroupBusyError(msg) from error
            raise

    def close(self) -> None:
        """Close the client. Twice is fine."""
        self._consumer.close()

    def _describe(self) -> Sequence[Any]:
        admin = cast("Any", self._admin)  # its annotation leaves the futures' results unknown
        asked = admin.describe_consumer_groups([self._group], request_timeout=TIMEOUT_S)[self._group]
        try:
            return asked.result(TIMEOUT_S + 1).members or ()
        except KafkaException as error:
            if error.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND:
                return ()
            raise

    def _insist(self, ask: Callable[[], _Answer], what: str) -> _Answer:
        """Ask again while the coordinator is on its way; a new group's first question is what makes it come."""
        deadline = time.monotonic() + DEADLINE_S
        while True:
            try:
                return ask()
            except FutureTimeoutError as error:
                raise TemporaryError(f"{what}: no answer within {TIMEOUT_S:g} s; try again") from error
            except KafkaException as error:
                if error.args[0].code() not in _COORDINATOR_ON_ITS_WAY or time.monotonic() >= deadline:
                    raise TemporaryError(f"{what}: {error.args[0].str()}; try again") from error
                time.sleep(PAUSE_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
