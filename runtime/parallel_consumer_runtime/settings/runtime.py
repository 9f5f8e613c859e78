"""What a pod reads: a static half, fixed for the process's life, and a live half, watched in a mounted file."""

from parallel_consumer_runtime.settings.kafka import KafkaSpec
from parallel_consumer_runtime.settings.model import SettingsModel
from parallel_consumer_runtime.settings.processing import (
    BufferSpec,
    ConcurrencySpec,
    Ordering,
    RetrySpec,
    Worker,
)
from parallel_consumer_runtime.settings.quantities import Duration

STATIC_ENV = "PARALLEL_CONSUMER_STATIC"
"""Environment variable that holds the static half as JSON: changing it changes the pod template, so it rolls."""
LIVE_ENV = "PARALLEL_CONSUMER_LIVE"
"""Environment variable that holds the path of the live half's JSON file."""
PORT_ENV = "PARALLEL_CONSUMER_PORT"
"""Environment variable that holds the port of /healthz, /readyz, /metrics and /status."""
POD_NAME_ENV = "POD_NAME"
"""Environment variable that holds the pod's name, `<name>-<ordinal>`: the member's group.instance.id."""
LIVE_FILE = "live.json"
"""The live half's key in the ConfigMap and its name in the mounted folder."""
LIVE_FOLDER = "/etc/parallel-consumer"
"""Where the ConfigMap is mounted."""
STATUS_PORT = 8080
"""The port of the status server in a pod."""


class StaticSettings(SettingsModel):
    """Fixed for the process's life."""

    name: str
    """The ParallelConsumer's name."""
    handler: str
    """package.module:function."""
    worker: Worker
    """Where handlers run."""
    ordering: Ordering
    """What may not run beside each other."""
    kafka: KafkaSpec
    """Brokers, group, topics."""
    results_topic: str | None = None
    """Where returned records go."""
    dead_letter_topic: str | None = None
    """Where records go that used up their attempts."""
    drain_timeout: Duration = 30.0
    """How long records in flight may take to end on shutdown or revocation."""


class LiveSettings(SettingsModel):
    """Applied between records, without touching the process or the group."""

    revision: str
    """Names this content; a pod reports the revision it applied."""
    replicas: int = 1
    """How many ordinals the group is to have; members at or above it leave."""
    concurrency: ConcurrencySpec
    """Records in flight per pod."""
    retry: RetrySpec
    """Attempts and backoff."""
    buffer: BufferSpec
    """How much is read ahead."""
    commit_interval: Duration
    """Time between two commits."""
    paused: bool = False
    """Take no new records."""
