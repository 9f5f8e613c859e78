"""What a pod tells at `/status`: one snapshot, read by the operator and by the live view."""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class MemberState(StrEnum):
    """Where a member's life stands."""

    STARTING = "Starting"
    RUNNING = "Running"
    PAUSED = "Paused"
    DRAINING = "Draining"
    CLOSING = "Closing"
    CLOSED = "Closed"


class StatusModel(BaseModel):
    """Tolerant of fields it does not know: pods and operator are of different versions during an upgrade."""

    model_config = ConfigDict(alias_generator=to_camel, extra="ignore", frozen=True, populate_by_name=True)


class PartitionStatus(StatusModel):
    """One assigned partition."""

    topic: str
    partition: int
    committed: int | None
    """Last acknowledged commit (an offset), None before the first."""
    end: int | None
    """High watermark, None before the first fetch."""
    lag: int | None
    """Records not yet complete by the commit: end minus committed; None when unknown, never 0."""
    buffered: int
    """Records waiting or running."""
    paused: bool
    """Not fetched from, because its buffer is full."""


class ProducedEnd(StatusModel):
    """How far what this process produced reaches in one partition of its results topic or its dead-letter topic."""

    topic: str
    partition: int
    end: int
    """The highest offset that the broker acknowledged, plus one; under exactly once, of committed transactions alone."""


class HeadOfLine(StatusModel):
    """The oldest record in flight: what holds its partition's commit back."""

    topic: str
    partition: int
    offset: int
    age_s: float
    key_hash: str | None
    """Eight hexadecimal digits, so that keys do not leak into logs."""
    attempt: int


class MemberStatus(StatusModel):
    """One pod, at one moment. Counters grow from the process's start."""

    member: str
    """group.instance.id: the pod's name."""
    state: MemberState
    revision: str
    """The live revision that is applied."""
    epoch: int
    """Grows with each assignment or revocation seen by this process."""
    rebalances: int
    """Assignments after the first, and revocations, seen by this process."""
    concurrency: int
    """Records that may be in flight now."""
    in_flight: int
    buffered: int
    """Records waiting or running, over all partitions."""
    handled: int
    """Records completed by this process."""
    failures: int
    """Handler calls that raised."""
    dead_lettered: int
    results: int
    """Records produced to the results topic and acknowledged."""
    skipped: int
    """Records not handled because the committed map said they were complete."""
    metadata_errors: int
    """Committed maps that could not be read; their records were handled again."""
    lag: int | None
    """Sum over the assigned partitions; None while any is unknown."""
    kafka_reachable: bool
    partitions: list[PartitionStatus]
    produced: list[ProducedEnd] = []
    """Results and dead letters of this process; of partitions that got none there is no entry."""
    head_of_line: HeadOfLine | None = None
    at: float
    """When this was so: Unix time, seconds."""
    started_at: float
    """Unix time, seconds."""
    first_handled_at: float | None = None
    """Unix time of the first completed record, seconds."""
    error: str | None = None
    """Why the process is ending, when it is."""
