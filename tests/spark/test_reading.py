"""A window as a DataFrame: exactly its offsets, committed records only, or one clear error."""

from typing import TYPE_CHECKING, Any

import pytest

from parallel_consumer_spark import (
    BrokerError,
    DataLossError,
    WindowError,
    deduplicated,
    read,
    read_with_report,
    with_avro,
    with_json,
    with_provenance,
)
from parallel_consumer_spark.log_check import Skipped
from parallel_consumer_spark.window import Window
from tests.support.filling import delete_below, replace_topic
from tests.support.kafka import KafkaBroker
from tests.support.spark_windows import Sent, ends, send, window_json, window_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def places(records: "DataFrame") -> list[tuple[int, int]]:
    """Return (partition, offset) of each record, sorted."""
    return sorted((row["partition"], row["offset"]) for row in records.select("partition", "offset").collect())


def numbered(partition: int, count: int, **headers: bytes) -> list[Sent]:
    """Return records of one partition, by number."""
    return [Sent(partition, f"key-{n}", f"{n}".encode(), dict(headers)) for n in range(count)]


def test_exactly_the_offsets_of_the_window_are_read(kafka: KafkaBroker, spark: "SparkSession", topic: str) -> None:
    """Neither the offset before the start nor the one at the end; all columns are as they were produced."""
    send(kafka.bootstrap, topic, [*numbered(0, 20, trace=b"\xff"), *numbered(1, 20)])
    window = window_of(kafka.bootstrap, topic, {0: (5, 12), 1: (7, 7)})
    records = read(spark, window)
    assert places(records) == [(0, offset) for offset in range(5, 12)]
    assert records.columns == ["key", "value", "headers", "timestamp", "topic", "partition", "offset"]
    first: Any = records.where("offset = 5").collect()[0]
    assert (bytes(first["key"]), bytes(first["value"]), first["topic"]) == (b"key-5", b"5", topic)
    assert [(one["key"], bytes(one["value"])) for one in first["headers"]] == [("trace", b"\xff")]


def test_an_empty_window_is_an_empty_frame_of_the_same_columns(
    kafka: KafkaBroker, spark: "SparkSession", topic: str
) -> None:
    """Nothing was completed: the application runs all the same."""
    records = read(spark, window_of(kafka.bootstrap, topic, {0: (0, 0)}))
    assert records.count() == 0
    send(kafka.bootstrap, topic, numbered(0, 1))
    assert records.schema == read(spark, window_of(kafka.bootstrap, topic, {0: (0, 1)})).schema


def test_aborted_records_and_markers_are_not_read(kafka: KafkaBroker, spark: "SparkSession", topic: str) -> None:
    """A window that ends with an aborted transaction ends: only what was committed is in it."""
    send(kafka.bootstrap, topic, numbered(0, 3), transactional_id=f"{topic}-a")
    send(kafka.bootstrap, topic, numbered(0, 4), transactional_id=f"{topic}-b", end="abort")
    end = ends(kafka.bootstrap, topic)[0]
    assert end == 9
    assert places(read(spark, window_of(kafka.bootstrap, topic, {0: (0, end)}))) == [(0, 0), (0, 1), (0, 2)]


def test_a_topic_made_anew_is_refused(kafka: KafkaBroker, spark: "SparkSession", topic: str) -> None:
    """Its offsets look like the window's and are others: no reading, even where gone offsets may be skipped."""
    send(kafka.bootstrap, topic, numbered(0, 3))
    text = window_json(kafka.bootstrap, topic, {0: (0, 3)}, onDataLoss="Skip")
    replace_topic(kafka.bootstrap, topic, 2)
    send(kafka.bootstrap, topic, numbered(0, 3))
    with pytest.raises(DataLossError, match=f"{topic} was made anew"):
        read(spark, Window.from_json(text))
    with pytest.raises(DataLossError, match="the topic nowhere is not there"):
        read(spark, Window.from_json(text.replace(topic, "nowhere")))


def test_gone_offsets_are_an_error_or_skipped_and_reported(
    kafka: KafkaBroker, spark: "SparkSession", topic: str
) -> None:
    """Fail says which offsets are gone; Skip reads the rest, and tells what it did without."""
    send(kafka.bootstrap, topic, [*numbered(0, 10), *numbered(1, 2)])
    delete_below(kafka.bootstrap, topic, {0: 6, 1: 2})
    ranges = {0: (4, 8), 1: (0, 2)}
    with pytest.raises(DataLossError, match=r"\[0\] begins at 6 now: the offsets 4 to 5 of the window are gone"):
        read(spark, window_of(kafka.bootstrap, topic, ranges))
    records, skipped = read_with_report(spark, window_of(kafka.bootstrap, topic, ranges, onDataLoss="Skip"))
    assert places(records) == [(0, 6), (0, 7)]
    assert skipped == (Skipped(topic, 0, 4, 6), Skipped(topic, 1, 0, 2))
    with pytest.raises(DataLossError, match="ends at 10 now, below the window's end 11"):
        read(spark, window_of(kafka.bootstrap, topic, {0: (6, 11)}))


def test_brokers_that_do_not_answer_are_a_reason_to_run_again(
    spark: "SparkSession", kafka: KafkaBroker, topic: str
) -> None:
    """Their name may be known a moment later: the status says that another attempt is right."""
    window = window_json(kafka.bootstrap, topic, {0: (0, 1)}).replace(kafka.bootstrap, "nowhere.invalid:9092")
    with pytest.raises(BrokerError, match=r"the brokers at nowhere\.invalid:9092 do not answer"):
        read(spark, Window.from_json(window))


def test_each_result_is_kept_once(kafka: KafkaBroker, spark: "SparkSession", topic: str) -> None:
    """Of copies the first by partition and offset stays; dead letters count too; what others produced is all kept."""

    def result(partition: int, offset: int, index: int, value: bytes) -> Sent:
        told = {"topic": b"in", "partition": b"3", "offset": b"%d" % offset, "index": b"%d" % index}
        return Sent(partition, "k", value, {f"parallel-consumer-result-{name}": text for name, text in told.items()})

    dead = {
        f"parallel-consumer-dead-letter-{n}": v for n, v in {"topic": b"in", "partition": b"3", "offset": b"9"}.items()
    }
    foreign = {"parallel-consumer-result-topic": b"in", "parallel-consumer-result-partition": b"no number"}
    send(
        kafka.bootstrap,
        topic,
        [
            *(result(0, 1, 0, b"first"), result(0, 1, 1, b"second of one"), result(0, 1, 0, b"copy")),
            *(Sent(0, "f", b"foreign", foreign), Sent(0, "f", b"foreign", foreign), Sent(0, "f", b"foreign", {})),
            *(
                result(1, 1, 0, b"copy"),
                result(1, 2, 0, b"other"),
                Sent(1, "d", b"dead", dead),
                Sent(1, "d", b"dead", dead),
            ),
        ],
    )
    records = read(spark, window_of(kafka.bootstrap, topic, {0: (0, 6), 1: (0, 4)}))
    kept = deduplicated(records)
    values = sorted(bytes(row["value"]) for row in kept.collect())
    assert values == [b"dead", b"first", b"foreign", b"foreign", b"foreign", b"other", b"second of one"]
    row = with_provenance(records).where("partition = 1 AND offset = 1").collect()[0]
    assert [row[f"source_{name}"] for name in ("topic", "partition", "offset", "index")] == ["in", 3, 2, 0]
    assert kept.columns == with_provenance(records).columns


def test_values_are_read_by_a_schema(kafka: KafkaBroker, spark: "SparkSession", topic: str) -> None:
    """JSON and Avro, framed or not; a tombstone stays null; what does not fit is an error unless nulls are asked for."""
    texts = [
        b'{"route": "JFK-LAX", "delay": 4.5}',
        None,
        b"no json",
        b"\x0eJFK-LAX",
        b"\x00\x00\x00\x00\x07\x0eJFK-LAX",
    ]
    send(kafka.bootstrap, topic, [Sent(0, "k", text, {}) for text in texts])
    window = window_of(kafka.bootstrap, topic, {0: (0, 5)})
    records = read(spark, window).orderBy("offset")
    rows = with_json(records.limit(2), "route STRING, delay DOUBLE").select("record.*").collect()
    assert [tuple(row) for row in rows] == [("JFK-LAX", 4.5), (None, None)]
    bad = records.where("offset = 2")
    with pytest.raises(Exception, match="Malformed records are detected"):
        with_json(bad, "route STRING").collect()
    assert with_json(bad, "route STRING", malformed="Null").select("record.route").collect()[0][0] is None
    schema = '{"type": "record", "name": "Flight", "fields": [{"name": "route", "type": "string"}]}'
    plain = with_avro(records.where("offset = 3"), schema).select("record.route").collect()
    framed = with_avro(records.where("offset = 4"), schema, framed=True).select("record.route").collect()
    assert [plain[0][0], framed[0][0]] == ["JFK-LAX", "JFK-LAX"]
    with pytest.raises(WindowError, match="the Avro schema is no JSON"):
        with_avro(records, "{")
