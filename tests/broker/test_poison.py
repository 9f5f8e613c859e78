"""Poison of every kind, on a real broker: it ends in the dead-letter topic, and nothing else waits for it or is lost.

What ends a process (`os._exit`, a crash in native code) is an attempt of its record with the Process worker alone; with
the others it ends the pod, and the record is handled again when that is back.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.support.history import End, read_history
from tests.support.kafka import KafkaBroker
from tests.support.members import Members, spec_for
from tests.support.poison import LARGE
from tests.support.traffic import read_topic

pytestmark = pytest.mark.proves(3, 13)

GOOD = 600
LARGE_BYTES = 1024**2
HEADER = "parallel-consumer-dead-letter-"

# value -> the error's name and a piece of its message, as the dead letter tells them
IN_PYTHON: dict[bytes | None, tuple[str, str]] = {
    b"raises": ("ValueError", "this record is poison"),
    b"system-exit": ("SystemExit", "enough"),
    b"recursion": ("RecursionError", "maximum recursion depth"),
    b"memory": ("MemoryError", ""),
    b"wordless": ("_WordlessError", "cannot be described"),
    b"surrogates": ("ValueError", "\\udcff\\udcfe"),
    b"strange-return": ("TypeError", "'object' object is not iterable"),
    b"strange-result": ("TypeError", "of type object"),
    b"surrogate-result": ("UnicodeEncodeError", "surrogates not allowed"),
    b"\xff\xfe": ("UnicodeDecodeError", "can't decode byte 0xff"),
    None: ("TypeError", "a tombstone is nothing to handle"),
    LARGE + b"x" * (LARGE_BYTES - len(LARGE)): ("ValueError", "1048576 bytes are too many"),
}
OF_A_PROCESS: dict[bytes | None, tuple[str, str]] = {
    b"exit": ("HandlerProcessEndedError", "ended with exit status 3"),
    b"exit-well": ("HandlerProcessEndedError", "ended with exit status 0"),
    b"segfault": ("HandlerProcessEndedError", "was killed by SIGSEGV"),
    b"killed": ("HandlerProcessEndedError", "was killed by SIGKILL"),
}


@pytest.fixture
def topics(kafka: KafkaBroker, unique: str) -> tuple[str, str, str]:
    """Return three new topics, for input, results and dead letters, that take records of two megabytes."""
    names = unique, f"{unique}-results", f"{unique}-dead"
    for name in names:
        kafka.create_topic(name, 2, {"max.message.bytes": str(2 * LARGE_BYTES)})
    return names


def produce(bootstrap: str, topic: str, poison: list[bytes | None]) -> None:
    """Produce the good records with the poison among them; each poison has a key of its own, good records before and behind."""
    producer = Producer({"bootstrap.servers": bootstrap, "message.max.bytes": 2 * LARGE_BYTES, "log_level": 0})
    for n in range(GOOD):
        producer.produce(topic, f"good-{n}".encode(), f"key-{n % 50}".encode())
        if n % (GOOD // len(poison)) == 0 and (at := n // (GOOD // len(poison))) < len(poison):
            producer.produce(topic, poison[at], f"key-{n % 50}".encode())
        producer.poll(0)
    assert producer.flush(30) == 0


@pytest.mark.parametrize(
    ("worker", "handler"), [("Async", "on_record_async"), ("Thread", "on_record"), ("Process", "on_record")]
)
def test_poison_of_every_kind_ends_in_the_dead_letter_topic(  # noqa: PLR0917 - fixtures
    kafka: KafkaBroker,
    topics: tuple[str, str, str],
    group: str,
    tmp_path: Path,
    worker: str,
    handler: str,
    figure: Callable[[object], None],
) -> None:
    """Two attempts each, with its cause; every good record is handled once, and the commit reaches the end."""
    topic, results, dead_topic = topics
    expected = {**IN_PYTHON, **OF_A_PROCESS} if worker == "Process" else IN_PYTHON
    produce(kafka.bootstrap, topic, list(expected))
    total = GOOD + len(expected)
    spec = spec_for(
        kafka.bootstrap,
        topic,
        group,
        handler,
        results=results,
        worker=worker,
        **({"processes": 2} if worker == "Process" else {}),
        concurrency={"fixed": 16},
        retry={"maxAttempts": 2, "initialBackoff": "20ms"},
        deadLetter={"topic": dead_topic},
    ).model_copy(update={"handler": f"tests.support.poison:{handler}"})
    with Members("poison", spec, tmp_path, work_ms=1) as members:
        members.start(0)
        status = members.wait_status(0, lambda s: s.handled == total and s.lag == 0, "all is complete", 60)
        assert (status.dead_lettered, status.failures) == (len(expected), 2 * len(expected))
        assert members.terminate(0) == 0
    assert kafka.committed_total(group, topic) == total
    inputs = read_topic(kafka.bootstrap, topic, kafka.end_offsets(topic))
    letters = read_topic(kafka.bootstrap, dead_topic, kafka.end_offsets(dead_topic))
    causes = {one.value: one.headers for one in letters}
    assert len(letters) == len(expected)
    for value, (name, words) in expected.items():
        said = {key.removeprefix(HEADER): (text or b"").decode() for key, text in causes[value].items()}
        assert said["error"] == name, value
        assert words in said["message"], value
        assert said["attempts"] == "2"
        (origin,) = [one.at for one in inputs if one.value == value]
        assert (said["topic"], said["partition"], said["offset"]) == (topic, str(origin.partition), str(origin.offset))
        if value in OF_A_PROCESS:
            assert f"{topic}[{origin.partition}]@{origin.offset}" in said["message"]
    done = sorted((e.at.partition, e.at.offset) for e in read_history(members.history_path) if type(e) is End)
    good = sorted((one.at.partition, one.at.offset) for one in inputs if (one.value or b"").startswith(b"good-"))
    assert done == good
    figure(f"{worker}: {len(letters)} of {total} records were poison of {len(expected)} kinds")
