"""The shipped applications over real topics; what they say is checked against a second computation in plain Python."""

import collections
import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from parallel_consumer_spark.jobs import archive, dead_letters, processing_statistics
from tests.support.filling import delete_below
from tests.support.kafka import KafkaBroker
from tests.support.spark_windows import Sent, send, window_file, window_json
from tests.support.traffic import read_topic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIRST_MS = 1_767_322_800_000
"""2026-01-02T03:00:00Z."""
RECORDS = 400


def results(seed: int = 7) -> tuple[list[Sent], dict[str, Any]]:
    """Return results of records with up to two results each, a third of them there twice, and what one pass says of them."""
    chance, sent = random.Random(seed), list[Sent]()
    latencies: dict[tuple[str, int], list[int]] = collections.defaultdict(list)
    attempts: dict[tuple[str, int], list[int]] = collections.defaultdict(list)
    values: set[tuple[int, int, int]] = set()
    for offset in range(RECORDS):
        at = FIRST_MS + 20_000 * offset  # over three hours
        key, latency, tries = f"key-{offset % 5}", chance.randrange(1, 5000), chance.randrange(1, 4)
        latencies[key, (at + latency) // 3_600_000].append(latency)
        attempts[key, (at + latency) // 3_600_000].append(tries)
        for index in range(chance.randrange(1, 3)):
            place = {"topic": "flights", "partition": f"{offset % 3}", "offset": f"{offset}", "index": f"{index}"}
            told = place | {"timestamp-ms": f"{at}", "attempts": f"{tries}"}
            headers = {f"parallel-consumer-result-{name}": text.encode() for name, text in told.items()}
            value = json.dumps({"n": offset, "index": index}).encode()
            values.add((offset % 3, offset, index))
            sent += [Sent(offset % 2, key, value, headers, at + latency)] * chance.choice((1, 1, 2))
    return sent, {"latencies": latencies, "attempts": attempts, "values": values}


@pytest.fixture
def kept_topic(kafka: KafkaBroker, topic: str) -> str:
    """Return a new topic of 2 partitions that keeps records of long ago."""
    kafka.create_topic(f"{topic}-kept", 2, {"retention.ms": "-1"})
    return f"{topic}-kept"


def whole(kafka: KafkaBroker, topic: str) -> dict[int, tuple[int, int]]:
    """Return all offsets of a topic."""
    return {number: (0, end) for number, end in kafka.end_offsets(topic).items()}


def test_an_archive_of_windows_holds_each_result_once(
    kafka: KafkaBroker, spark: "SparkSession", kept_topic: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two windows, each run twice, the second time when retention took its offsets: the table equals the one-pass result."""
    sent, expected = results()
    send(kafka.bootstrap, kept_topic, sent)
    output = str(tmp_path / "out")
    ranges = whole(kafka, kept_topic)
    cuts = [
        {n: (0, end // 2) for n, (_, end) in ranges.items()},
        {n: (end // 2, end) for n, (_, end) in ranges.items()},
    ]
    options = ["--output", output, "--partition-by", "date,hour", "--values", "Json", "--schema", "n BIGINT, index INT"]
    for again in (False, True):
        for sequence, cut in enumerate(cuts, 1):
            file = window_file(tmp_path, window_json(kafka.bootstrap, kept_topic, cut, sequence=sequence))
            assert archive.main(["--window", str(file), *options]) == 0
        said = capsys.readouterr().out
        assert said.count("published already, by attempt 1-") == (2 if again else 0)
        delete_below(kafka.bootstrap, kept_topic, {n: end for n, (_, end) in ranges.items()})
    from parallel_consumer_spark import deduplicated  # noqa: PLC0415 - as an application's author writes it

    table = deduplicated(spark.read.parquet(output))
    rows = table.select(
        "source_partition", "source_offset", "source_index", "record.n", "record.index", "hour"
    ).collect()
    assert {tuple(row)[:3] for row in rows} == expected["values"]
    assert len(rows) == len(expected["values"])
    assert all((row["source_offset"], row["source_index"]) == (row["n"], row["index"]) for row in rows)
    assert {row["hour"] for row in rows} == {3, 4, 5}
    assert (tmp_path / "out" / "window=1" / "date=2026-01-02" / "hour=3").is_dir()


def test_an_empty_window_is_archived_and_done(
    kafka: KafkaBroker, spark: "SparkSession", topic: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A window without offsets, and one that holds nothing but what was aborted: each is published, with no row."""
    send(kafka.bootstrap, topic, [Sent(0, "k", b"v", {})], transactional_id=topic, end="abort")
    cuts: list[dict[int, tuple[int, int]]] = [{}, {0: (0, 2)}]
    for sequence, cut in enumerate(cuts, 1):
        file = window_file(tmp_path, window_json(kafka.bootstrap, topic, cut, sequence=sequence))
        for partition_by in ("", "date"):
            output = tmp_path / f"by-{partition_by}"
            assert archive.main(["--window", str(file), "--output", str(output), "--partition-by", partition_by]) == 0
            assert "0 records published in" in capsys.readouterr().out
    assert spark.read.parquet(str(tmp_path / "by-")).count() == 0


def test_an_archive_says_in_one_line_why_it_fails(
    kafka: KafkaBroker, spark: "SparkSession", topic: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the status that says whether another attempt is of use; nothing is to be seen."""
    assert spark.version
    send(kafka.bootstrap, topic, [Sent(0, "k", b"no json", {})] * 3)
    output = ["--output", str(tmp_path / "out")]

    def failing(text: str, *options: str) -> tuple[int, str]:
        status = archive.main(["--window", str(window_file(tmp_path, text)), *output, *options])
        lines = capsys.readouterr().err.strip().splitlines()
        return status, lines[-1]

    good = window_json(kafka.bootstrap, topic, {0: (0, 3)})
    assert failing("{")[0] == 78
    status, line = failing(good, "--partition-by", "route")
    assert (status, "--partition-by: there is no column route; there are key, value" in line) == (78, True)
    assert failing(good, "--values", "Json") == (78, "error: --values Json needs --schema")
    status, line = failing(good, "--values", "Json", "--schema", "n INT")
    assert status == 70
    assert line.startswith("error: ")
    delete_below(kafka.bootstrap, topic, {0: 2})
    status, line = failing(good)
    assert (status, "[0] begins at 2 now" in line) == (65, True)
    assert not list((tmp_path / "out").glob("window=*"))


def letters(topic: str) -> list[Sent]:
    """Return dead letters: three of two causes, one of them there twice, one put back twice before, and one of others."""

    def letter(offset: int, key: str, error: str, **more: bytes) -> Sent:
        told = {
            "topic": topic,
            "partition": "1",
            "offset": f"{offset}",
            "timestamp-ms": f"{FIRST_MS}",
            "attempts": "5",
            "error": error,
            "message": f"about {offset}",
            "member": "flights-0",
            "at-ms": f"{FIRST_MS + 1000 * offset}",
        }
        headers = {f"parallel-consumer-dead-letter-{name}": text.encode() for name, text in told.items()}
        return Sent(0, key, b"value %d" % offset, {"trace": b"\xff", **more, **headers})

    often = {"parallel-consumer-redrive-count": b"2"}
    first = letter(1, "a", "ValueError")
    return [
        first,
        first,
        letter(2, "a", "KeyError"),
        letter(3, "b", "ValueError", **often),
        Sent(0, "x", b"foreign", {}),
    ]


def test_dead_letters_are_summed_up_by_cause_and_key(
    kafka: KafkaBroker, spark: "SparkSession", topic: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a table that is printed, and as Parquet that is published once."""
    send(kafka.bootstrap, topic, letters("orders"))
    output = tmp_path / "out"
    by_hand = ["--bootstrap-servers", kafka.bootstrap, "--topic", topic, "--from", "0:0", "--to", "0:5"]
    assert dead_letters.main([*by_hand, "--output", str(output)]) == 0
    assert "about 2" in capsys.readouterr().out
    table = spark.read.parquet(str(output / "summary"))
    rows = {
        (row["cause"], row["key"]): (row["records"], row["attempts_max"], row["redrives_max"])
        for row in table.collect()
    }
    assert rows == {
        ("ValueError", "a"): (1, 5, 0),
        ("ValueError", "b"): (1, 5, 2),
        ("KeyError", "a"): (1, 5, 0),
        (None, "x"): (1, None, 0),
    }
    assert dead_letters.main([*by_hand, "--output", str(output)]) == 0
    assert "done already" in capsys.readouterr().out


def test_dead_letters_go_back_as_they_were_and_counted(
    kafka: KafkaBroker, spark: "SparkSession", topic: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A dry run sends nothing; then each goes to its own partition with key, value and headers; what was put back too often stays."""
    assert spark.version
    source = f"{topic}-source"
    kafka.create_topic(source, 2)
    send(kafka.bootstrap, topic, letters(source))
    arguments = ["--bootstrap-servers", kafka.bootstrap, "--topic", topic, "--redrive", "--max-redrives", "2"]
    assert dead_letters.main(arguments) == 0
    said = capsys.readouterr().out
    assert f"2 records would go back to {source}" in said
    assert f"1 records of {source} stay: they were put back 2 times" in said
    assert "1 records stay: no consumer of ours gave them up" in said
    assert "nothing was done: add --execute" in said
    assert dead_letters.main([*arguments, "--execute", "--max-records", "1"]) == 78
    assert kafka.end_offsets(source) == {0: 0, 1: 0}
    ledger = ["--output", str(tmp_path / "out")]
    assert dead_letters.main([*arguments, "--execute", *ledger]) == 0
    received = read_topic(kafka.bootstrap, source, kafka.end_offsets(source))
    assert sorted((one.at.partition, one.key, one.value) for one in received) == [
        (1, b"a", b"value 1"),
        (1, b"a", b"value 2"),
    ]
    assert all(one.headers == {"trace": b"\xff", "parallel-consumer-redrive-count": b"1"} for one in received)
    capsys.readouterr()
    assert dead_letters.main([*arguments, "--execute", *ledger]) == 0
    assert "done already" in capsys.readouterr().out
    assert kafka.end_offsets(source) == {0: 0, 1: 2}


def test_statistics_equal_a_second_computation(
    kafka: KafkaBroker, spark: "SparkSession", kept_topic: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Latency, attempts and throughput for each key and hour, copies and second results not counted."""
    sent, expected = results()
    send(kafka.bootstrap, kept_topic, sent)
    file = window_file(tmp_path, window_json(kafka.bootstrap, kept_topic, whole(kafka, kept_topic)))
    assert processing_statistics.main(["--window", str(file), "--output", str(tmp_path / "out")]) == 0
    assert "latency_ms_p95" in capsys.readouterr().out
    found: dict[tuple[str, int], Any] = {}
    for row in spark.read.parquet(str(tmp_path / "out")).collect():
        found[row["key"], int(row["hour"].timestamp()) // 3600] = row
    assert set(found) == set(expected["latencies"])
    for place, latencies in expected["latencies"].items():
        row, tries, ordered = found[place], expected["attempts"][place], sorted(latencies)
        assert (row["records"], row["latency_ms_max"]) == (len(ordered), ordered[-1])
        assert row["latency_ms_p50"] == ordered[(len(ordered) + 1) // 2 - 1]
        assert row["attempts_max"] == max(tries)
        assert row["attempts_mean"] == pytest.approx(sum(tries) / len(tries))
        assert row["records_per_s"] == pytest.approx(len(ordered) / 3600)
