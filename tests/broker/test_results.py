"""What handlers produce, and what they give up on: acknowledged before the input counts as complete."""

import os
from pathlib import Path

import pytest

from parallel_consumer_runtime.offsets import decode
from tests.support.history import Outcome, Start, read_history
from tests.support.kafka import KafkaBroker
from tests.support.members import Members, spec_for
from tests.support.traffic import Traffic, read_topic
from tests.support.waiting import wait_until

RECORDS = 20_000


@pytest.fixture
def results_topic(kafka: KafkaBroker, unique: str) -> str:
    """Return a new topic of 2 partitions that refuses records of more than 500 kB."""
    name = f"{unique}-results"
    kafka.create_topic(name, 2, {"max.message.bytes": "500000"})
    return name


PROVENANCE = ("topic", "partition", "offset", "index", "attempts", "timestamp-ms", "at-ms")


@pytest.fixture
def dead_topic(kafka: KafkaBroker, unique: str) -> str:
    """Return a new topic of 1 partition."""
    name = f"{unique}-dead"
    kafka.create_topic(name, 1)
    return name


@pytest.mark.proves(11)
def test_every_completed_input_has_its_result_even_after_a_kill(
    kafka: KafkaBroker, topic: str, results_topic: str, group: str, tmp_path: Path
) -> None:
    """Killed in the middle: whatever the committed offset and its map call complete is in the results topic."""
    spec = spec_for(kafka.bootstrap, topic, group, "with_result", results=results_topic, concurrency={"fixed": 100})
    with Members("results", spec, tmp_path, work_ms=3) as members:
        Traffic(kafka.bootstrap, topic).send((f"key-{n % 999}", f"{n}".encode()) for n in range(RECORDS))
        members.start(0)
        members.wait_status(0, lambda status: status.handled > RECORDS // 3, "is in the middle")
        members.kill(0)
        committed = kafka.committed(group, topic)
        received = read_topic(kafka.bootstrap, results_topic, kafka.end_offsets(results_topic))
        values = {one.value for one in received}
        inputs = read_topic(kafka.bootstrap, topic, kafka.end_offsets(topic))
        complete = 0
        for one in inputs:
            if (commit := committed.get(one.at.partition)) is None:
                continue
            known = decode(commit.metadata, commit.offset)
            below = one.at.offset < commit.offset
            mapped = one.at.offset <= known.highest and not any(a <= one.at.offset <= b for a, b in known.incomplete)
            if below or mapped:
                complete += 1
                assert one.value in values, f"{one.at} counts as complete and has no result"
        print(f"killed with {complete} inputs complete and {len(received)} results")
        assert 0 < complete < RECORDS
        members.start(0)
        members.wait_status(0, lambda status: status.handled > 0 and status.lag == 0, "handled the rest")
        members.terminate(0)
    received = read_topic(kafka.bootstrap, results_topic, kafka.end_offsets(results_topic))
    assert {one.value for one in received} == {one.value for one in inputs}
    made_of = {one.value: (topic.encode(), one.at.partition, one.at.offset) for one in inputs}
    for one in received:
        told = {name: one.headers[f"parallel-consumer-result-{name}"] or b"" for name in PROVENANCE}
        assert (told["topic"], int(told["partition"]), int(told["offset"])) == made_of[one.value]
        assert (told["index"], told["attempts"]) == (b"0", b"1")
        assert 0 <= int(told["at-ms"]) - int(told["timestamp-ms"]) < 600_000


@pytest.mark.proves(11)
def test_an_input_whose_result_is_refused_is_not_complete(
    kafka: KafkaBroker, topic: str, results_topic: str, group: str, tmp_path: Path
) -> None:
    """The broker refuses one result: its input stays incomplete and is tried again, everything else goes on."""
    spec = spec_for(kafka.bootstrap, topic, group, "with_result", results=results_topic, concurrency={"fixed": 10})
    with Members("refused", spec, tmp_path, work_ms=1) as members:
        traffic = Traffic(kafka.bootstrap, topic)
        traffic.send([("large", os.urandom(600_000))])  # which no compression makes fit
        traffic.send((f"key-{n}", b"small") for n in range(1000))
        members.start(0)
        # The end, not the lag: the map above the stuck record is committed, the offset below it stays.
        status = members.wait_status(0, lambda status: status.handled == 1000, "did the rest")
        assert status.results == 1000
        wait_until(lambda: kafka.committed_total(group, topic) > 0, "something is committed", 10)
        large = next(one for one in read_topic(kafka.bootstrap, topic, kafka.end_offsets(topic)) if one.key == b"large")
        wait_until(
            lambda: kafka.committed(group, topic)[large.at.partition].offset == large.at.offset, "the commit waits", 10
        )
        assert "not acknowledged" in members.process(0).text()


@pytest.mark.proves(13)
def test_a_record_that_used_up_its_attempts_becomes_a_dead_letter(
    kafka: KafkaBroker, topic: str, dead_topic: str, group: str, tmp_path: Path
) -> None:
    """Three attempts, then the dead-letter topic with provenance; its key's later records follow only after it."""
    spec = spec_for(
        kafka.bootstrap,
        topic,
        group,
        "fail_on_poison",
        retry={"maxAttempts": 3, "initialBackoff": "20ms"},
        deadLetter={"topic": dead_topic},
    )
    with Members("poison", spec, tmp_path, work_ms=1) as members:
        traffic = Traffic(kafka.bootstrap, topic)
        traffic.send([("bad", b"before"), ("bad", b"poison"), ("bad", b"after")])
        traffic.send((f"key-{n}", b"fine") for n in range(200))
        members.start(0)
        status = members.wait_status(0, lambda status: status.handled == 203, "everything is complete")
        assert (status.dead_lettered, status.failures) == (1, 3)
        members.terminate(0)
    (letter,) = read_topic(kafka.bootstrap, dead_topic, kafka.end_offsets(dead_topic))
    poison = next(one for one in read_topic(kafka.bootstrap, topic, kafka.end_offsets(topic)) if one.value == b"poison")
    assert (letter.key, letter.value) == (b"bad", b"poison")
    said = {name.removeprefix("parallel-consumer-dead-letter-"): value for name, value in letter.headers.items()}
    assert said["topic"] == topic.encode()
    assert said["partition"] == str(poison.at.partition).encode()
    assert said["offset"] == str(poison.at.offset).encode()
    assert said["attempts"] == b"3"
    assert said["error"] == b"ValueError"
    assert said["message"] == b"this record is poison"
    assert said["member"] == b"poison-0"
    calls = [e for e in read_history(members.history_path) if type(e) is Start and e.key == "bad"]
    first = poison.at.offset
    assert [call.at.offset - first for call in calls] == [
        calls[0].at.offset - first,
        0,
        0,
        0,
        calls[-1].at.offset - first,
    ]
    assert calls[0].at.offset < first < calls[-1].at.offset
    assert kafka.committed_total(group, topic) == 203
    assert Outcome.FAILED in {getattr(e, "outcome", None) for e in read_history(members.history_path)}
