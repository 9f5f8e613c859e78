"""One module per step of making the world as an object wishes: observe, act, report."""

from parallel_consumer_operator.reconcile.parallelconsumer import Reconciler
from parallel_consumer_operator.reconcile.sparkjob import SparkJobReconciler

__all__ = ["Reconciler", "SparkJobReconciler"]
