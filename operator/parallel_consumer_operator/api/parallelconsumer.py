"""One ParallelConsumer as the API server holds it: identity, spec, last status."""

from dataclasses import dataclass
from typing import Any, Self

from parallel_consumer_operator.api.status import ParallelConsumerStatus
from parallel_consumer_runtime.settings import API_GROUP, API_VERSION, KIND, ParallelConsumerSpec

API_VERSION_OF_KIND = f"{API_GROUP}/{API_VERSION}"
PLURAL = "parallelconsumers"


@dataclass(frozen=True, slots=True)
class Identity:
    """What children need to know of their owner."""

    name: str
    namespace: str
    uid: str
    generation: int
    kind: str = KIND

    @classmethod
    def of(cls, manifest: dict[str, Any]) -> Self:
        """Read the identity; the API server guarantees that the fields are there."""
        metadata = manifest["metadata"]
        return cls(
            name=metadata["name"],
            namespace=metadata["namespace"],
            uid=metadata["uid"],
            generation=int(metadata.get("generation", 1)),
            kind=manifest.get("kind", KIND),
        )


@dataclass(frozen=True, slots=True)
class ParallelConsumer:
    """A validated object."""

    identity: Identity
    spec: ParallelConsumerSpec
    status: ParallelConsumerStatus

    @classmethod
    def parse(cls, manifest: dict[str, Any]) -> Self:
        """Validate what the API server returned.

        Raises:
            pydantic.ValidationError: when the spec says what the schema could not refuse, such as a topic pattern
                that is no regular expression, or was stored under an older schema.
        """
        return cls(
            identity=Identity.of(manifest),
            spec=ParallelConsumerSpec.model_validate(manifest.get("spec", {})),
            status=ParallelConsumerStatus.of(manifest),
        )
