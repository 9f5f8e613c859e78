"""Summarises dead letters, and puts them back: `spark-submit dead_letters.py`."""

import sys

from parallel_consumer_spark.jobs.dead_letters import main

if __name__ == "__main__":
    sys.exit(main())
