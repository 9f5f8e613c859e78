"""How long a commit's metadata may be: as the manifest says, and less once a broker has refused it."""

import logging

from confluent_kafka import KafkaError

SIZE_MIN = 64

_log = logging.getLogger(__name__)


class MetadataLimit:
    """Used by the one thread that commits.

    Args:
        size_max: characters, of `spec.kafka.offsetMetadataMaxBytes`.
    """

    def __init__(self, size_max: int) -> None:
        self.size_max = size_max

    def heed(self, error: KafkaError) -> None:
        """Take half as much from now on if that is what a commit was refused for."""
        if error.code() == KafkaError.OFFSET_METADATA_TOO_LARGE:
            self.size_max = max(SIZE_MIN, self.size_max // 2)
            _log.warning("the broker's offset.metadata.max.bytes is smaller: maps are cut to %d", self.size_max)
