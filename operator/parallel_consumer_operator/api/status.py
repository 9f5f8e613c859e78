"""What the operator writes into `.status`: aggregates and conditions, never one entry per pod or partition."""

from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from pydantic.alias_generators import to_camel


class State(StrEnum):
    """The one word of the STATUS column."""

    PENDING = "Pending"
    RUNNING = "Running"
    UPDATING = "Updating"
    PAUSED = "Paused"
    STOPPED = "Stopped"
    DEGRADED = "Degraded"
    REFUSED = "Refused"


class ConditionType(StrEnum):
    """The questions that conditions answer."""

    READY = "Ready"
    RECONCILING = "Reconciling"
    CONCURRENCY_APPLIED = "ConcurrencyApplied"
    KAFKA_REACHABLE = "KafkaReachable"
    WINDOWS_ADVANCING = "WindowsAdvancing"


class ConditionStatus(StrEnum):
    """Kubernetes' three answers."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Reason(StrEnum):
    """Every reason a condition may carry: scripts match on these words, so they only ever grow."""

    AS_DESIRED = "AsDesired"
    ALL_PODS_READY = "AllPodsReady"
    PODS_NOT_READY = "PodsNotReady"
    POD_FAILING = "PodFailing"
    NO_PODS_WANTED = "NoPodsWanted"
    SPEC_REFUSED = "SpecRefused"
    TEMPLATE_REFUSED = "TemplateRefused"
    CHILD_REFUSED = "ChildRefused"
    NAME_TAKEN = "NameTaken"
    APPLYING = "Applying"
    ROLLING = "Rolling"
    SCALING = "Scaling"
    ACKNOWLEDGED = "Acknowledged"
    WAITING_FOR_PODS = "WaitingForPods"
    PODS_DO_NOT_REPORT = "PodsDoNotReport"
    CONNECTED = "Connected"
    DISCONNECTED = "Disconnected"
    WAITING_FOR_BASELINE = "WaitingForBaseline"
    TOPIC_MADE_ANEW = "TopicMadeAnew"
    COMMITTED_WENT_BACK = "CommittedWentBack"
    LOG_WENT_BACK = "LogWentBack"
    LOG_BEHIND = "LogBehind"
    OFFSETS_LOST = "OffsetsLost"
    RUN_FAILED = "RunFailed"
    PODS_DO_NOT_ANSWER = "PodsDoNotAnswer"
    UNREADABLE = "Unreadable"


class StatusPart(BaseModel):
    """Frozen; tolerant when read back, because an older or newer operator may have written it."""

    model_config = ConfigDict(
        alias_generator=to_camel, extra="ignore", frozen=True, populate_by_name=True, use_attribute_docstrings=True
    )


class Condition(StatusPart):
    """A metav1.Condition."""

    type: Annotated[str, StringConstraints(min_length=1, max_length=316)]
    """Which question."""
    status: ConditionStatus
    """The answer."""
    reason: Annotated[str, StringConstraints(min_length=1, max_length=1024)]
    """One CamelCase word for scripts."""
    message: Annotated[str, StringConstraints(max_length=32768)]
    """A sentence for people."""
    last_transition_time: Annotated[str, StringConstraints(max_length=64)]
    """When the answer last changed, RFC 3339."""
    observed_generation: Annotated[int, Field(ge=0)] | None = None
    """The generation of the spec that this answer is about."""


class ParallelConsumerStatus(StatusPart):
    """Written by the operator alone."""

    state: State = State.PENDING
    """The whole in one word."""
    observed_generation: Annotated[int, Field(ge=0)] | None = None
    """The generation of the spec that this status is about."""
    replicas: Annotated[int, Field(ge=0)] = 0
    """Pods that exist. Read by the scale subresource."""
    ready_replicas: Annotated[int, Field(ge=0)] = 0
    """Pods that are members of the group and consume."""
    selector: Annotated[str, StringConstraints(max_length=512)] | None = None
    """The pods' label selector as a string. Read by the scale subresource."""
    concurrency: Annotated[int, Field(ge=0)] | None = None
    """Records that may be in flight now, summed over the pods that report."""
    in_flight: Annotated[int, Field(ge=0)] | None = None
    """Records in flight, summed over the pods that report."""
    lag: Annotated[int, Field(ge=0)] | None = None
    """Records not yet complete, over all pods. Absent while any pod does not know: unknown is never 0."""
    applied_revision: Annotated[str, StringConstraints(max_length=64)] | None = None
    """The live settings that every pod applied. Absent while pods differ."""
    conditions: Annotated[list[Condition], Field(max_length=16)] = Field(default_factory=list[Condition])
    """One per question: Ready, Reconciling, ConcurrencyApplied, KafkaReachable."""

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
