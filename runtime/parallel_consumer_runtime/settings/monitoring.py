"""`spec.monitoring`: how much of a pod is told to whoever asks."""

from typing import Annotated

from pydantic import Field

from parallel_consumer_runtime.settings.model import SettingsModel


class MonitoringSpec(SettingsModel):
    """Bounds of what /metrics, /status and the probes may cost a pod."""

    partitions: Annotated[int, Field(ge=1, le=100_000)] = 1000
    """Assigned partitions that have metrics of their own; what lies beyond them, in order of topic and number, is summed up as one
    partition `others`. 1000, because a pattern may match any number of topics, and a server of metrics keeps each label for
    long."""
    connections: Annotated[int, Field(ge=1, le=1000)] = 32
    """Connections to the pod's port at once; one more is answered with 503. 32, because the operator, the kubelet and two
    servers of metrics need fewer than ten, and each takes a thread."""
