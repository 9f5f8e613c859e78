"""Archives a window as partitioned Parquet: `spark-submit archive.py --output FOLDER`."""

import sys

from parallel_consumer_spark.jobs.archive import main

if __name__ == "__main__":
    sys.exit(main())
