"""What a real consumer produced, read as an application does: copies of a result are told from results."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from parallel_consumer_spark import deduplicated, read
from tests.support.kafka import KafkaBroker
from tests.support.members import Members, spec_for
from tests.support.spark_windows import window_of
from tests.support.traffic import Traffic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RECORDS = 6000


@pytest.mark.timeout(180)
def test_the_results_of_a_consumer_that_was_killed_are_kept_once(
    kafka: KafkaBroker, spark: "SparkSession", topic: str, tmp_path: Path
) -> None:
    """Handled again after the kill, and so produced again; deduplicated, there is one for each input."""
    results = f"{topic}-results"
    kafka.create_topic(results, 2)
    pace = {"concurrency": {"fixed": 50}, "commitInterval": "10s"}
    spec = spec_for(kafka.bootstrap, topic, f"{topic}-group", "with_result", results=results, **pace)
    with Members("flights", spec, tmp_path, work_ms=5) as members:
        Traffic(kafka.bootstrap, topic).send((f"key-{n % 500}", f"{n}".encode()) for n in range(RECORDS))
        members.start(0)
        members.wait_status(0, lambda status: status.handled > RECORDS // 3, "is in the middle")
        members.kill(0)
        members.start(0)
        members.wait_status(0, lambda status: status.handled > 0 and status.lag == 0, "handled the rest")
        assert members.terminate(0) == 0
    ends = kafka.end_offsets(results)
    records = read(spark, window_of(kafka.bootstrap, results, {partition: (0, end) for partition, end in ends.items()}))
    assert records.count() > RECORDS
    kept = deduplicated(records).select("source_topic", "source_partition", "source_offset", "source_index").collect()
    inputs = {
        (topic, partition, offset, 0) for partition, end in kafka.end_offsets(topic).items() for offset in range(end)
    }
    assert len(kept) == len(inputs) == RECORDS
    assert {tuple(row) for row in kept} == inputs
