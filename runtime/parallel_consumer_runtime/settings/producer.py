"""`spec.producer`: how results, dead letters and retried records are produced."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from parallel_consumer_runtime.settings.model import SettingsModel
from parallel_consumer_runtime.settings.quantities import Between, Duration, Size


class Partitioner(StrEnum):
    """Which partition a key belongs to."""

    MURMUR2 = "Murmur2"
    CRC32 = "Crc32"


class Compression(StrEnum):
    """How batches are compressed."""

    NONE = "None"
    GZIP = "Gzip"
    SNAPPY = "Snappy"
    LZ4 = "Lz4"
    ZSTD = "Zstd"


class ProducerSpec(SettingsModel):
    """The pod's producer: idempotent, acknowledged by all replicas. A result may name its partition itself."""

    partitioner: Partitioner = Partitioner.MURMUR2
    """Murmur2 puts a key where the Java client puts it, Crc32 where librdkafka and what is built on it do. Murmur2, because
    most topics were filled by it. Records without a key stick to one partition for a batch, then to another."""
    linger: Annotated[Duration, Between("0s", "10s")] = 0.005
    """How long a batch waits for more. 5ms, because a record is complete only when its results are acknowledged, so
    waiting holds its key."""
    batch_bytes: Size = 1024**2
    """A batch is at most so large."""
    compression: Compression = Compression.LZ4
    """Lz4, because it costs least for what it saves."""
    buffer_bytes: Size = 64 * 1024**2
    """Results, dead letters and retried records that the broker has not acknowledged, with 256 bytes for each beside its key and
    value. When it is full, no record is handed out until it is less; what handlers return meanwhile comes on top."""
    delivery_timeout: Annotated[Duration, Between("1s", "1h")] = 120.0
    """What was not acknowledged by then failed: the record is handled again, which is no attempt of its own."""
    max_in_flight: Annotated[int, Field(ge=1, le=5)] = 5
    """Requests on their way to one broker. At most 5, beyond which an idempotent producer cannot keep order."""
