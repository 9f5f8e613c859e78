"""The whole `spec` of a ParallelConsumer: what a user writes, for a cluster and for a laptop alike."""

import json
from typing import Annotated, Any, Self

from pydantic import Field, StringConstraints, model_validator

from parallel_consumer_runtime.settings.kafka import KafkaSpec
from parallel_consumer_runtime.settings.model import HandlerPath, SettingsModel
from parallel_consumer_runtime.settings.monitoring import MonitoringSpec
from parallel_consumer_runtime.settings.offsets import TopicRole
from parallel_consumer_runtime.settings.processing import ProcessingSpec, ResultsSpec
from parallel_consumer_runtime.settings.producer import ProducerSpec
from parallel_consumer_runtime.settings.quantities import ResourceQuantity
from parallel_consumer_runtime.settings.spark_entry import SparkJobEntry

API_GROUP = "parallelconsumer.io"
API_VERSION = "v1alpha1"
KIND = "ParallelConsumer"

JsonObject = dict[str, Any]


ResourceAmounts = Annotated[dict[str, ResourceQuantity], Field(max_length=32)]


class ResourcesSpec(SettingsModel):
    """What the consumer container asks of its node, as in a container."""

    requests: ResourceAmounts | None = None
    """What the scheduler sets aside, by resource."""
    limits: ResourceAmounts | None = None
    """What the container may use at most, by resource."""


class ParallelConsumerSpec(SettingsModel):
    """One consumer group member per replica, many records of each partition at a time."""

    image: Annotated[str, StringConstraints(min_length=1, max_length=1024)]
    """The image with the runtime and the handler's code."""
    image_pull_policy: Annotated[str, StringConstraints(pattern="^(Always|IfNotPresent|Never)$")] | None = None
    """As in a pod. Left to Kubernetes when unset."""
    handler: HandlerPath
    """The handler inside the image, as package.module:function."""
    replicas: Annotated[int, Field(ge=0, le=1000)] = 1
    """Pods, each a static member of the group. More than partitions brings nothing: raise the concurrency."""
    kafka: KafkaSpec
    """Where the records are."""
    processing: ProcessingSpec = ProcessingSpec()
    """How records become handler calls."""
    results: ResultsSpec | None = None
    """Where records returned by the handler go. Needed only when it returns any."""
    producer: ProducerSpec = ProducerSpec()
    """How results, dead letters and retried records are produced."""
    monitoring: MonitoringSpec = MonitoringSpec()
    """What the pods' metrics and status may cost."""
    spark_jobs: Annotated[list[SparkJobEntry], Field(max_length=16)] = Field(default_factory=list[SparkJobEntry])
    """Spark applications over what was finished: each offset in exactly one run of each."""
    env: Annotated[list[JsonObject], Field(max_length=256)] = Field(default_factory=list[JsonObject])
    """Environment variables for the handler, as in a container."""
    resources: ResourcesSpec | None = None
    """Requests and limits of the consumer container."""
    template: JsonObject = Field(default_factory=dict)
    """Any other part of the pod: `metadata` and `spec` are merged over what the operator renders. A service account,
    host namespaces, hostPath volumes and privileged containers are refused."""

    @model_validator(mode="after")
    def _spark_jobs_have_their_source(self) -> Self:
        names = [entry.name for entry in self.spark_jobs]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            msg = f"sparkJobs: {twice[0]} is there twice"
            raise ValueError(msg)
        sources = {entry.source for entry in self.spark_jobs}
        if TopicRole.RESULTS in sources and self.results is None:
            raise ValueError("sparkJobs: source Results needs spec.results")
        if TopicRole.DEAD_LETTERS in sources and self.processing.dead_letter is None:
            raise ValueError("sparkJobs: source DeadLetters needs spec.processing.deadLetter")
        return self

    @classmethod
    def read(cls, written: object) -> Self:
        """Return what a user wrote, judged as strictly as the API server does: a number in quotes is none.

        Raises:
            ValidationError: what does not fit, and where.
            TypeError: what was written is not plain data, such as a date that names a field.
            ValueError: it contains itself.
        """
        return cls.model_validate_json(json.dumps(written, default=str), strict=True)
