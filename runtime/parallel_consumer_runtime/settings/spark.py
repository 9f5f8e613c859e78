"""The `spec` of a SparkJob: one PySpark application, its driver, its executors, in the names that Spark users know.

What a consumer's entry and a SparkJob share is one model, `SparkApplicationSpec`.
"""

from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import Field, StringConstraints, field_validator, model_validator

from parallel_consumer_runtime.settings.model import SettingsModel
from parallel_consumer_runtime.settings.quantities import RESOURCE_PATTERN, Between, Duration
from parallel_consumer_runtime.settings.spark_conf import refusal_of
from parallel_consumer_runtime.settings.window import WindowSpec

SPARK_JOB_KIND = "SparkJob"

MEMORY_PATTERN = r"^[1-9][0-9]{0,5}[mMgG]$"
APPLICATION_PATTERN = r"^[a-z][a-z0-9+.-]*:/[^\s,]+\.py$"
MODULE_PATTERN = r"^[a-z][a-z0-9+.-]*:/[^\s,]+\.(py|zip|egg)$"

JsonObject = dict[str, Any]
Memory = Annotated[str, StringConstraints(pattern=MEMORY_PATTERN, max_length=16)]
"""As Spark writes it: `512m`, `2g`."""
CpuQuantity = Annotated[str, StringConstraints(pattern=RESOURCE_PATTERN, min_length=1, max_length=16)]
"""As Kubernetes writes it: `500m`, `"2"`."""
Cores = Annotated[int, Field(ge=1, le=1024)]
Count = Annotated[int, Field(ge=0, le=10_000)]
Argument = Annotated[str, StringConstraints(max_length=4096)]
ConfValue = Annotated[str, StringConstraints(max_length=4096)]


class RestartType(StrEnum):
    """Whether a run that failed is tried again."""

    NEVER = "Never"
    ON_FAILURE = "OnFailure"


class SparkPodSpec(SettingsModel):
    """What driver and executors have in common."""

    cores: Cores = 1
    """Tasks at once. The pod requests so many CPUs, unless coreRequest says otherwise."""
    core_request: CpuQuantity | None = None
    """CPUs that the scheduler sets aside, such as 500m. As cores when unset."""
    core_limit: CpuQuantity | None = None
    """CPUs that the pod may use at most. No limit when unset."""
    memory: Memory = "1g"
    """The JVM's heap, as Spark writes it: 512m, 2g. The pod's request and limit are this and memoryOverhead."""
    memory_overhead: Memory | None = None
    """Memory beside the heap: Python, buffers, the JVM itself. Two fifths of memory when unset, and 384m at least, as Spark
    reckons for Python."""
    template: JsonObject = Field(default_factory=dict)
    """Any other part of the pod: `metadata` and `spec` are merged over what the operator renders. A service account,
    host namespaces, hostPath volumes and privileged containers are refused."""


class DriverSpec(SparkPodSpec):
    """The pod in which the application's own code runs."""


class ExecutorSpec(SparkPodSpec):
    """The pods in which its tasks run."""

    instances: Annotated[int, Field(ge=0, le=1000)] = 1
    """Executors. With 0 the driver runs the tasks itself, on its own cores. With dynamicAllocation, how many at first."""


class DynamicAllocationSpec(SettingsModel):
    """Executors come and go with the work."""

    enabled: bool = False
    """Whether they do."""
    initial_executors: Count | None = None
    """How many at first. As executor.instances when unset."""
    min_executors: Count | None = None
    """How many at least. Spark's own default, 0, when unset."""
    max_executors: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """How many at most. No limit when unset."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        least, first, most = self.min_executors, self.initial_executors, self.max_executors
        if least is not None and most is not None and least > most:
            msg = "minExecutors must not be greater than maxExecutors"
            raise ValueError(msg)
        if first is not None and ((least is not None and first < least) or (most is not None and first > most)):
            msg = "initialExecutors must lie between minExecutors and maxExecutors"
            raise ValueError(msg)
        return self


class RestartPolicySpec(SettingsModel):
    """What follows a failed attempt."""

    type: RestartType = RestartType.NEVER
    """Never, because an application that is not idempotent must not run twice unasked; or OnFailure."""
    on_failure_retries: Annotated[int, Field(ge=0, le=100)] = 3
    """With OnFailure, further attempts after the first. An attempt that was suspended is not counted."""
    on_failure_retry_interval: Annotated[Duration, Between("0s", "24h")] = 10.0
    """From the end of a failed attempt to the beginning of the next."""


class TimeoutsSpec(SettingsModel):
    """How long an attempt may take; one that takes longer is stopped and has failed."""

    start: Annotated[Duration, Between("10s", "24h")] = 600.0
    """From the beginning of an attempt until the driver and, when executors are wanted, a first executor run. 10m: time to
    pull a large image, or for a node to be added."""
    run: Annotated[Duration, Between("1s", "720h")] | None = None
    """From then on until the end. No limit when unset."""


class SparkApplicationSpec(SettingsModel):
    """One PySpark application and how it is run."""

    image_pull_policy: Annotated[str, StringConstraints(pattern="^(Always|IfNotPresent|Never)$")] | None = None
    """As in a pod, for driver and executors. Left to Kubernetes when unset."""
    main_application_file: Annotated[str, StringConstraints(pattern=APPLICATION_PATTERN, max_length=1024)]
    """The application's Python file; `local:///opt/app/job.py` is a path in the image."""
    arguments: Annotated[list[Argument], Field(max_length=128)] = Field(default_factory=list[Argument])
    """Its arguments. `$(NAME)` is replaced by the driver's environment variable of that name, as in a container."""
    py_files: Annotated[
        list[Annotated[str, StringConstraints(pattern=MODULE_PATTERN, max_length=1024)]], Field(max_length=64)
    ] = Field(default_factory=list[str])
    """Further Python files, zip or egg archives that it imports, of driver and executors."""
    spark_conf: Annotated[dict[str, ConfValue], Field(max_length=128)] = Field(default_factory=dict[str, ConfValue])
    """Spark properties. What has a field here, and what the operator decides, is refused."""
    env: Annotated[list[JsonObject], Field(max_length=256)] = Field(default_factory=list[JsonObject])
    """Environment variables of driver and executors, as in a container."""
    driver: DriverSpec = DriverSpec()
    """The driver's pod."""
    executor: ExecutorSpec = ExecutorSpec()
    """The executors' pods."""
    dynamic_allocation: DynamicAllocationSpec = DynamicAllocationSpec()
    """Whether executors come and go with the work."""
    restart_policy: RestartPolicySpec = RestartPolicySpec()
    """What follows a failed attempt."""
    timeouts: TimeoutsSpec = TimeoutsSpec()
    """How long an attempt may take."""

    @field_validator("spark_conf")
    @classmethod
    def _refuse_managed_keys(cls, conf: dict[str, str]) -> dict[str, str]:
        if problems := [words for key in conf if (words := refusal_of(key)) is not None]:
            raise ValueError("; ".join(problems))
        return conf

    @property
    def executors_wanted(self) -> int:
        """How many executors there are to be before the application counts as running: those that Spark asks for at first."""
        dynamic = self.dynamic_allocation
        if not dynamic.enabled:
            return self.executor.instances
        return max(dynamic.initial_executors or 0, dynamic.min_executors or 0, self.executor.instances)

    @property
    def local(self) -> bool:
        """Whether the driver runs the tasks itself."""
        return not self.dynamic_allocation.enabled and self.executor.instances == 0


class SparkJobSpec(SparkApplicationSpec):
    """One run of one application. Everything but `suspend` is immutable: another run is another object."""

    image: Annotated[str, StringConstraints(min_length=1, max_length=1024)]
    """The image of driver and executors: Spark in /opt/spark, user 185, and the application."""
    time_to_live_seconds_after_finished: Annotated[int, Field(ge=0, le=31_536_000)] | None = None
    """How long the object stays after its end. Kept until it is deleted when unset, or when another object controls it."""
    suspend: bool = False
    """True ends the attempt that runs and begins none; false again begins a new attempt from the start."""
    window: WindowSpec | None = None
    """The offsets that the run is about. The application finds them in the file that PARALLEL_CONSUMER_WINDOW names."""
