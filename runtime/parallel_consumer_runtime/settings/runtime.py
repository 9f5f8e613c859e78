"""What a pod reads: a static half, fixed for the process's life, and a live half, watched in a mounted file."""

from pydantic import Field

from parallel_consumer_runtime.settings.kafka import KafkaSpec
from parallel_consumer_runtime.settings.model import SettingsModel
from parallel_consumer_runtime.settings.monitoring import MonitoringSpec
from parallel_consumer_runtime.settings.outcomes import DeadLetterSpec, DeferralSpec, RetrySpec, RetryTopicSpec
from parallel_consumer_runtime.settings.pace import BatchSpec, BufferSpec, ConcurrencySpec, RateLimitSpec
from parallel_consumer_runtime.settings.processing import CommitMode, Ordering, SubPartitionsSpec, Worker
from parallel_consumer_runtime.settings.producer import ProducerSpec
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
    processes: int | None = None
    """How many processes the Process worker may have; None for one for each usable processor."""
    ordering: Ordering
    """What may not run beside each other."""
    kafka: KafkaSpec
    """Brokers, group, topics."""
    results_topic: str | None = None
    results_provenance: bool = False
    """Where returned records go."""
    sub_partitions: SubPartitionsSpec | None = None
    """What is put in order instead of keys."""
    batch: BatchSpec | None = None
    """What lists the handler is called with; None for one record at a time."""
    dead_letter: DeadLetterSpec | None = None
    """Where records go that used up their attempts."""
    retry_topic: RetryTopicSpec | None = None
    """Where failing records wait instead of holding their keys."""
    deferral: DeferralSpec | None = None
    """Whether handlers may complete records later."""
    producer: ProducerSpec = ProducerSpec()
    """How results, dead letters and retried records are produced."""
    monitoring: MonitoringSpec = MonitoringSpec()
    """What metrics and status may cost."""
    commit_mode: CommitMode = CommitMode.ASYNC
    """How offsets are committed."""
    drain_timeout: Duration = 30.0
    """How long records in flight may take to end on shutdown or revocation."""

    @property
    def dead_letter_topic(self) -> str | None:
        """The topic of dead letters, None when there is none."""
        return None if self.dead_letter is None else self.dead_letter.topic


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
    rate_limit: RateLimitSpec = RateLimitSpec()
    """Records per second that may start."""
    ignored_keys: list[str] = Field(default_factory=list[str])
    """Keys whose records are complete without a call."""
    scheduled_time_header: str | None = None
    """The header that says when a record may start."""
    slow_after: Duration = 30.0
    """A record that runs longer is reported."""
    stuck_after: Duration | None = None
    """A record that runs longer makes the pod unhealthy; None: never."""
    commit_interval: Duration
    """Time between two commits."""
    commit_records: int = 0
    """Completed records after which a commit does not wait for its time; 0 for none."""
    paused: bool = False
    """Take no new records."""
