"""Pure: what is seen of a SparkJob becomes what to do next and what to say. No client, no clock."""

from parallel_consumer_operator.sparkjob.decision import Begin, Decision, Remove, Stop, decide
from parallel_consumer_operator.sparkjob.readings import Attempt, Seen, SparkPod
from parallel_consumer_operator.sparkjob.report import refused_spark_status, spark_status_of

__all__ = [
    "Attempt",
    "Begin",
    "Decision",
    "Remove",
    "Seen",
    "SparkPod",
    "Stop",
    "decide",
    "refused_spark_status",
    "spark_status_of",
]
