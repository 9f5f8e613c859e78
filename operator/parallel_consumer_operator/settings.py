"""What the operator reads from its environment, each with its default and why."""

from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from parallel_consumer_operator.errors import OperatorError

_PREFIX = "OPERATOR_"


class OperatorSettings(BaseModel):
    """One operator process. The environment's names are these in capitals, after OPERATOR_."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    namespaces: tuple[str, ...] = ()
    """Namespaces to watch, separated by commas; all of the cluster when empty."""
    resync_interval_s: float = Field(default=300.0, ge=1)
    """How often every object is looked at without an event: repairs what an event did not tell."""
    sample_interval_s: float = Field(default=1.0, ge=0.1)
    """How often pods are asked what they do. The status is written every two seconds at most."""
    workers: int = Field(default=8, ge=1, le=64)
    """Objects that are reconciled at once."""
    port: int = Field(default=8081, ge=1, le=65535)
    """Port of /healthz, /readyz and /metrics."""
    spark_service_account: str = Field(default="parallel-consumer-spark", min_length=1, max_length=253)
    """The service account of Spark drivers, in the SparkJob's namespace. Not a field of the SparkJob: who writes one does not
    choose whose rights its code has."""
    log_level: str = "INFO"
    """Python's names of levels."""
    kubeconfig: Path | None = None
    """A kubeconfig file; the pod's service account when unset."""

    @field_validator("namespaces", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return tuple(filter(None, (part.strip() for part in value.split(",")))) if isinstance(value, str) else value


def read_settings(environment: Mapping[str, str]) -> OperatorSettings:
    """Read every OPERATOR_ variable.

    Raises:
        OperatorError: a variable is unknown or does not fit; names it.
    """
    given = {
        name.removeprefix(_PREFIX).lower(): value for name, value in environment.items() if name.startswith(_PREFIX)
    }
    try:
        return OperatorSettings.model_validate(given)
    except ValidationError as error:
        problems = (f"{_PREFIX}{str(p['loc'][0]).upper()}: {p['msg']}" for p in error.errors())
        raise OperatorError("; ".join(problems)) from error
