"""One SparkJob as the API server holds it: identity, spec, last status."""

from dataclasses import dataclass
from typing import Any, Self

from parallel_consumer_operator.api.parallelconsumer import Identity
from parallel_consumer_operator.api.sparkjob_status import SparkJobStatus
from parallel_consumer_operator.untyped import as_list, at
from parallel_consumer_runtime.settings.spark import SparkJobSpec

SPARK_JOB_PLURAL = "sparkjobs"


@dataclass(frozen=True, slots=True)
class SparkJob:
    """A validated object."""

    identity: Identity
    spec: SparkJobSpec
    status: SparkJobStatus
    controlled: bool
    """Whether another object controls it, and decides how long it stays."""

    @classmethod
    def parse(cls, manifest: dict[str, Any]) -> Self:
        """Validate what the API server returned.

        Raises:
            pydantic.ValidationError: when the spec was stored under an older schema.
        """
        references = as_list(at(manifest, "metadata", "ownerReferences")) or []
        return cls(
            identity=Identity.of(manifest),
            spec=SparkJobSpec.model_validate(manifest.get("spec", {})),
            status=SparkJobStatus.of(manifest),
            controlled=any(at(reference, "controller") is True for reference in references),
        )
