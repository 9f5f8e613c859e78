"""The kinds as models; the CRDs are generated from them."""

from parallel_consumer_operator.api.parallelconsumer import API_VERSION_OF_KIND, PLURAL, Identity, ParallelConsumer
from parallel_consumer_operator.api.sparkjob import SPARK_JOB_PLURAL, SparkJob
from parallel_consumer_operator.api.sparkjob_status import (
    LOG_TAIL_LENGTH_MAX,
    DriverStatus,
    ExecutorsStatus,
    SparkConditionType,
    SparkJobStatus,
    SparkReason,
    SparkState,
)
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
    "LOG_TAIL_LENGTH_MAX",
    "PLURAL",
    "SPARK_JOB_PLURAL",
    "Condition",
    "ConditionStatus",
    "ConditionType",
    "DriverStatus",
    "ExecutorsStatus",
    "Identity",
    "ParallelConsumer",
    "ParallelConsumerStatus",
    "Reason",
    "SparkConditionType",
    "SparkJob",
    "SparkJobStatus",
    "SparkReason",
    "SparkState",
    "State",
]
