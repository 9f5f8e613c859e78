"""Prints the folder of the applications' files, for spark-submit: `python -m parallel_consumer_spark.apps`."""

from pathlib import Path

if __name__ == "__main__":
    print(Path(__file__).parent)  # noqa: T201 - what it is for
