"""Tells latency, attempts and throughput: `spark-submit processing_statistics.py`."""

import sys

from parallel_consumer_spark.jobs.processing_statistics import main

if __name__ == "__main__":
    sys.exit(main())
