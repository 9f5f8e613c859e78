"""Pure: a SparkJob's spec becomes manifests. One module per child; no Kopf, no client, no clock."""

from parallel_consumer_operator.desired.spark.configmap import config_map
from parallel_consumer_operator.desired.spark.job import batch_job
from parallel_consumer_operator.desired.spark.refusals import spark_refusals
from parallel_consumer_operator.desired.spark.service import service

__all__ = ["batch_job", "config_map", "service", "spark_refusals"]
