"""The kinds as models; the CRDs are generated from them."""

from parallel_consumer_operator.api.parallelconsumer import API_VERSION_OF_KIND, PLURAL, Identity, ParallelConsumer
from parallel_consumer_operator.api.status import (
    Condition,
    ConditionStatus,
    ConditionType,
    ParallelConsumerStatus,
    Reason,
    State,
)

__all__ = [
    "API_VERSION_OF_KIND",
    "PLURAL",
    "Condition",
    "ConditionStatus",
    "ConditionType",
    "Identity",
    "ParallelConsumer",
    "ParallelConsumerStatus",
    "Reason",
    "State",
]
