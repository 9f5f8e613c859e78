"""What the operator writes into a SparkJob's `.status`: one word, the cause in words, the attempt, its pods, its times."""

from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import Field, StringConstraints, ValidationError

from parallel_consumer_operator.api.status import Condition, StatusPart

LOG_TAIL_LENGTH_MAX = 4096
MESSAGE_LENGTH_MAX = 2048

Text = Annotated[str, StringConstraints(max_length=MESSAGE_LENGTH_MAX)]
Name = Annotated[str, StringConstraints(max_length=512)]
Time = Annotated[str, StringConstraints(max_length=64)]
Count = Annotated[int, Field(ge=0)]


class SparkState(StrEnum):
    """The one word of the STATUS column."""

    PENDING = "Pending"
    STARTING = "Starting"
    RUNNING = "Running"
    RETRYING = "Retrying"
    SUSPENDED = "Suspended"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    REFUSED = "Refused"

    @property
    def final(self) -> bool:
        """Whether nothing follows."""
        return self in {SparkState.SUCCEEDED, SparkState.FAILED}


class SparkConditionType(StrEnum):
    """The questions that a SparkJob's conditions answer."""

    ACCEPTED = "Accepted"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"


class SparkReason(StrEnum):
    """Every reason a SparkJob's condition may carry: scripts match on these words, so they only ever grow."""

    AS_DESIRED = "AsDesired"
    SPEC_REFUSED = "SpecRefused"
    TEMPLATE_REFUSED = "TemplateRefused"
    CHILD_REFUSED = "ChildRefused"
    NAME_TAKEN = "NameTaken"
    IN_PROGRESS = "InProgress"
    WAITING = "Waiting"
    RUNNING = "Running"
    RETRYING = "Retrying"
    SUSPENDED = "Suspended"
    FINISHED = "Finished"
    APPLICATION_SUCCEEDED = "ApplicationSucceeded"
    APPLICATION_FAILED = "ApplicationFailed"
    DRIVER_EVICTED = "DriverEvicted"
    DRIVER_OUT_OF_MEMORY = "DriverOutOfMemory"
    DRIVER_LOST = "DriverLost"
    DRIVER_REFUSED = "DriverRefused"
    DRIVER_UNSCHEDULABLE = "DriverUnschedulable"
    EXECUTORS_OUT_OF_MEMORY = "ExecutorsOutOfMemory"
    EXECUTORS_REFUSED = "ExecutorsRefused"
    EXECUTORS_UNSCHEDULABLE = "ExecutorsUnschedulable"
    EXECUTORS_FAILING = "ExecutorsFailing"
    IMAGE_UNAVAILABLE = "ImageUnavailable"
    CONTAINER_NOT_STARTED = "ContainerNotStarted"
    START_TIMEOUT = "StartTimeout"
    RUN_TIMEOUT = "RunTimeout"
    JOB_DELETED = "JobDeleted"


class DriverStatus(StatusPart):
    """The newest attempt's driver."""

    pod_name: Name | None = None
    """Its pod: `kubectl logs` shows what the application said, also after the end."""
    service_name: Name | None = None
    """The Service in front of it."""
    ui_address: Name | None = None
    """Where Spark's own pages are while it runs, in the cluster."""
    node_name: Name | None = None
    """The node it runs on, or ran on."""
    disruption: Text | None = None
    """Why the cluster ends the pod, when it does."""
    log_tail: Annotated[str, StringConstraints(max_length=LOG_TAIL_LENGTH_MAX)] | None = None
    """The last lines of a failed attempt's log."""


class ExecutorsStatus(StatusPart):
    """The newest attempt's executors."""

    wanted: Count = 0
    """How many there are to be at first."""
    pending: Count = 0
    """Pods that exist and do not run yet."""
    running: Count = 0
    """Pods that run."""
    failed: Count = 0
    """Pods that failed while the driver ran; Spark replaces them."""


class SparkJobStatus(StatusPart):
    """Written by the operator alone."""

    state: SparkState = SparkState.PENDING
    """The whole in one word."""
    message: Text | None = None
    """Why, in words: what is waited for, or what ended the run."""
    observed_generation: Count | None = None
    """The generation of the spec that this status is about."""
    attempts: Count = 0
    """Attempts that were begun."""
    failures: Count = 0
    """Attempts that failed. Those that were suspended are not among them."""
    job_name: Name | None = None
    """The batch Job of the newest attempt."""
    driver: DriverStatus = DriverStatus()
    """The newest attempt's driver."""
    executors: ExecutorsStatus = ExecutorsStatus()
    """The newest attempt's executors."""
    application_id: Name | None = None
    """Spark's own id of the newest attempt, once it has executors."""
    start_time: Time | None = None
    """When the first attempt began."""
    running_since: Time | None = None
    """When the newest attempt had a driver and, where executors are wanted, a first executor. timeouts.run counts from here."""
    failure_time: Time | None = None
    """When the newest failed attempt ended."""
    completion_time: Time | None = None
    """When the last attempt ended. timeToLiveSecondsAfterFinished counts from here."""
    conditions: Annotated[list[Condition], Field(max_length=16)] = Field(default_factory=list[Condition])
    """One per question: Accepted, Running, Succeeded."""

    @classmethod
    def of(cls, manifest: dict[str, Any]) -> Self:
        """Read what was written last. What another version of the operator wrote, and this one cannot read, counts as nothing."""
        try:
            return cls.model_validate(manifest.get("status") or {})
        except ValidationError:
            return cls()

    def to_manifest(self) -> dict[str, Any]:
        """Return the status as the API server takes it; what is unknown is absent."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)
