"""One settings model: what a user writes, what a pod reads, what a pod tells. The operator imports only this."""

from parallel_consumer_runtime.settings.errors import explain
from parallel_consumer_runtime.settings.kafka import (
    FORBIDDEN_KEYS,
    MANAGED_KEYS,
    Assignor,
    AutoOffsetReset,
    GroupProtocol,
    KafkaSpec,
)
from parallel_consumer_runtime.settings.model import SettingsModel
from parallel_consumer_runtime.settings.monitoring import MonitoringSpec
from parallel_consumer_runtime.settings.offsets import OffsetsAnswer, PartitionOffsets, TopicOffsets, TopicRole
from parallel_consumer_runtime.settings.outcomes import (
    DeadLetterSpec,
    DeadLetterStopSpec,
    DeferralSpec,
    RetrySpec,
    RetryTopicSpec,
)
from parallel_consumer_runtime.settings.pace import BatchSpec, BufferSpec, ConcurrencySpec, RateLimitSpec
from parallel_consumer_runtime.settings.processing import (
    CommitMode,
    Ordering,
    ProcessingSpec,
    ResultsSpec,
    SubPartitioning,
    SubPartitionsSpec,
    Worker,
)
from parallel_consumer_runtime.settings.producer import Compression, Partitioner, ProducerSpec
from parallel_consumer_runtime.settings.quantities import (
    BETWEEN,
    Between,
    Duration,
    Size,
    format_duration,
    parse_duration,
)
from parallel_consumer_runtime.settings.render import render_live, render_static
from parallel_consumer_runtime.settings.runtime import (
    LIVE_ENV,
    LIVE_FILE,
    LIVE_FOLDER,
    POD_NAME_ENV,
    PORT_ENV,
    STATIC_ENV,
    STATUS_PORT,
    LiveSettings,
    StaticSettings,
)
from parallel_consumer_runtime.settings.spec import API_GROUP, API_VERSION, KIND, JsonObject, ParallelConsumerSpec
from parallel_consumer_runtime.settings.status import (
    HeadOfLine,
    MemberState,
    MemberStatus,
    PartitionStatus,
    ProducedEnd,
)

__all__ = [
    "API_GROUP",
    "API_VERSION",
    "BETWEEN",
    "FORBIDDEN_KEYS",
    "KIND",
    "LIVE_ENV",
    "LIVE_FILE",
    "LIVE_FOLDER",
    "MANAGED_KEYS",
    "POD_NAME_ENV",
    "PORT_ENV",
    "STATIC_ENV",
    "STATUS_PORT",
    "Assignor",
    "AutoOffsetReset",
    "BatchSpec",
    "Between",
    "BufferSpec",
    "CommitMode",
    "Compression",
    "ConcurrencySpec",
    "DeadLetterSpec",
    "DeadLetterStopSpec",
    "DeferralSpec",
    "Duration",
    "GroupProtocol",
    "HeadOfLine",
    "JsonObject",
    "KafkaSpec",
    "LiveSettings",
    "MemberState",
    "MemberStatus",
    "MonitoringSpec",
    "OffsetsAnswer",
    "Ordering",
    "ParallelConsumerSpec",
    "PartitionOffsets",
    "PartitionStatus",
    "Partitioner",
    "ProcessingSpec",
    "ProducedEnd",
    "ProducerSpec",
    "RateLimitSpec",
    "ResultsSpec",
    "RetrySpec",
    "RetryTopicSpec",
    "SettingsModel",
    "Size",
    "StaticSettings",
    "SubPartitioning",
    "SubPartitionsSpec",
    "TopicOffsets",
    "TopicRole",
    "Worker",
    "explain",
    "format_duration",
    "parse_duration",
    "render_live",
    "render_static",
]
