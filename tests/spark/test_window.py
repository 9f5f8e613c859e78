"""A window's file and Kafka settings: what is wrong is named by its field, and nothing is guessed. Needs no Spark."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from parallel_consumer_runtime import dead_letters
from parallel_consumer_spark import SettingError, Window, WindowError, provenance
from parallel_consumer_spark.kafka_settings import java_settings
from parallel_consumer_spark.window import attempt
from tests.support.processes import REPOSITORY

WINDOW: dict[str, Any] = {
    "version": 1,
    "consumer": "flights",
    "namespace": "default",
    "consumerUid": "4f1c",
    "entry": "archive",
    "sequence": 7,
    "source": "Results",
    "topics": [
        {
            "name": "flight-delays",
            "id": "f9mJ8WsQQCqJnuMIOi2hDw",
            "partitions": [{"partition": 0, "start": 100, "end": 250}, {"partition": 1, "start": 5, "end": 5}],
        }
    ],
    "onDataLoss": "Fail",
    "kafka": {"bootstrapServers": "kafka:9092", "config": {"fetch.wait.max.ms": "100"}},
}


def test_a_window_is_read_from_its_file(tmp_path: Path) -> None:
    """By the environment's name for it; all fields are as they were written."""
    (tmp_path / "window.json").write_text(json.dumps(WINDOW))
    window = Window.from_environment({"PARALLEL_CONSUMER_WINDOW": str(tmp_path / "window.json")})
    assert (window.consumer, window.entry, window.sequence, window.source) == ("flights", "archive", 7, "Results")
    assert window.offsets == 150
    assert window.kafka_config == {"fetch.wait.max.ms": "100"}
    with pytest.raises(WindowError, match="PARALLEL_CONSUMER_WINDOW is not set: give the window's file with --window"):
        Window.from_environment({})
    with pytest.raises(WindowError, match=r"nowhere\.json cannot be read"):
        Window.from_file(tmp_path / "nowhere.json")


def test_partitions_without_offsets_make_no_other_window() -> None:
    """They may be listed or left out: the identity is the same."""
    less = {**WINDOW, "topics": [{**WINDOW["topics"][0], "partitions": WINDOW["topics"][0]["partitions"][:1]}]}
    assert Window.from_json(json.dumps(less)).identity == Window.from_json(json.dumps(WINDOW)).identity


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"version": 2}, "version is 2, and this library reads 1"),
    ({"consumer": ""}, "consumer is empty"),
    ({"sequence": "7"}, "sequence is '7': give a whole number from 0"),
    ({"sequence": True}, "sequence is True"),
    ({"source": "Output"}, "source is 'Output': give one of Input, Results, DeadLetters"),
    ({"onDataLoss": "Maybe"}, "onDataLoss is 'Maybe'"),
    ({"topics": None}, "topics is null: give a list"),
    ({"topics": [{"name": "a", "id": "x"}]}, r"topics\[0\]\.partitions is missing"),
    ({"topics": [{"name": "a", "partitions": []}]}, r"topics\[0\]\.id is missing"),
    (
        {"topics": [{"name": "a", "id": "x", "partitions": [{"partition": 0, "start": 3, "end": 2}]}]},
        r"topics\[0\]\.partitions\[0\]\.end is 2, below start 3",
    ),
    (
        {"topics": [{"name": "a", "id": "x", "partitions": [{"partition": 0, "start": 0, "end": 2}] * 2}]},
        r"topics\[0\]\.partitions: a partition is there twice",
    ),
    ({"topics": WINDOW["topics"] * 2}, "topics: flight-delays is there twice"),
    ({"kafka": {"config": {}}}, r"kafka\.bootstrapServers is missing"),
    ({"kafka": {"bootstrapServers": "k:1", "config": {"a": 1}}}, r"kafka\.config\.a is of type int: give a string"),
]


@pytest.mark.parametrize(("change", "words"), WRONG)
def test_what_is_wrong_with_a_window_is_named(change: dict[str, Any], words: str) -> None:
    """The field, what it is, what it should be."""
    with pytest.raises(WindowError, match=words):
        Window.from_json(json.dumps({**WINDOW, **change}))


@pytest.mark.parametrize(("text", "words"), [("{", "no JSON"), ("[]", "the window is of type list: give an object")])
def test_what_is_no_window_is_refused(text: str, words: str) -> None:
    """Half a file, or something else."""
    with pytest.raises(WindowError, match=words):
        Window.from_json(text)


def test_the_attempt_is_a_number() -> None:
    """The first one when nothing says otherwise."""
    assert attempt({}) == 1
    assert attempt({"PARALLEL_CONSUMER_ATTEMPT": "3"}) == 3
    with pytest.raises(WindowError, match="PARALLEL_CONSUMER_ATTEMPT is 'two'"):
        attempt({"PARALLEL_CONSUMER_ATTEMPT": "two"})


def test_settings_get_the_java_clients_names() -> None:
    """Security and tuning; what tunes librdkafka alone is left out, and told."""
    config = {
        "security.protocol": "sasl_ssl",
        "sasl.mechanisms": "SCRAM-SHA-512",
        "sasl.username": "flights",
        "sasl.password": "${env:KAFKA_PASSWORD}",
        "ssl.ca.location": "/etc/kafka/ca.crt",
        "ssl.certificate.location": "/etc/kafka/tls.crt",
        "ssl.key.location": "/etc/kafka/tls.key",
        "fetch.wait.max.ms": "100",
        "queued.min.messages": "20000",
    }
    settings, left_out = java_settings("kafka:9093", config)
    assert settings["security.protocol"] == "SASL_SSL"
    assert settings["sasl.mechanism"] == "SCRAM-SHA-512"
    assert settings["sasl.jaas.config"] == (
        "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="flights" password="${env:KAFKA_PASSWORD}";'
    )
    assert (settings["ssl.truststore.type"], settings["ssl.truststore.location"]) == ("PEM", "/etc/kafka/ca.crt")
    assert settings["ssl.keystore.key"] == "${dir:/etc/kafka:tls.key}"
    assert settings["fetch.max.wait.ms"] == "100"
    assert left_out == ("queued.min.messages",)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"sasl.password": "canary"}, r"sasl\.password is a secret: write \$\{env:NAME\}"),
        ({"fetch.wait.ms": "1"}, r"fetch\.wait\.ms: this library does not know"),
        ({"isolation.level": "read_uncommitted"}, r"isolation\.level: leave it out"),
        ({"enable.ssl.certificate.verification": "false"}, "the Java client always verifies"),
        ({"plugin.library.paths": "x.so"}, "it loads code"),
        ({"sasl.mechanism": "GSSAPI"}, "sasl.mechanism: GSSAPI is not mapped"),
        ({"sasl.username": "a"}, "need sasl.mechanism"),
        ({"sasl.mechanism": "PLAIN", "sasl.username": "a"}, "needs sasl.username and sasl.password"),
        ({"ssl.key.location": "/a/b"}, "a certificate and its key go together"),
        ({"ssl.key.location": "a", "ssl.certificate.location": "/a/b"}, "give an absolute path"),
    ],
)
def test_a_setting_that_cannot_be_given_is_refused(config: dict[str, str], words: str) -> None:
    """By name, with what to do; a secret's text is not repeated."""
    with pytest.raises(SettingError, match=words) as caught:
        java_settings("kafka:9092", config)
    assert "canary" not in str(caught.value)


def test_dead_letters_are_read_by_the_headers_that_the_runtime_writes() -> None:
    """The library imports nothing of the runtime's, so that this holds the two together."""
    assert provenance.DEAD_LETTER_PREFIX == dead_letters.PREFIX


def test_importing_the_library_loads_no_spark() -> None:
    """Neither Spark nor anything else that an image for it may lack."""
    code = (
        "import sys, parallel_consumer_spark, parallel_consumer_spark.jobs.archive\n"
        "print([name for name in ('pyspark', 'py4j', 'pydantic', 'confluent_kafka') if name in sys.modules])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True, cwd=REPOSITORY
    )
    assert ran.stdout.strip() == "[]"
