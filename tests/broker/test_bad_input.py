"""Bad input ends with one sentence that names the field or the file and the fix: exit status not 0, no traceback."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.kafka import KafkaBroker
from tests.support.kafka_view import Committed
from tests.support.members import Members, spec_for
from tests.support.ports import free_ports
from tests.support.processes import REPOSITORY
from tests.support.traffic import Traffic
from tests.support.waiting import wait_until

REFUSED_WITHIN_S = 15.0


def _manifest(kafka: KafkaBroker, topic: str) -> dict[str, Any]:
    return {
        "apiVersion": "parallelconsumer.io/v1alpha1",
        "kind": "ParallelConsumer",
        "metadata": {"name": "bad"},
        "spec": {
            "image": "not-used-here:1",
            "handler": "tests.support.recording:on_record",
            "kafka": {"bootstrapServers": kafka.bootstrap, "groupId": f"{topic}-group", "topics": [topic]},
        },
    }


def _refusal(manifest: dict[str, Any], folder: Path) -> str:
    """Run the manifest and return what was said, once it was refused as it should be."""
    path = folder / "consumer.yaml"
    path.write_text(yaml.safe_dump(manifest))
    command = [sys.executable, "-m", "parallel_consumer_runtime", "run", "-f", str(path), "--path", str(REPOSITORY)]
    started = time.monotonic()
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=REPOSITORY, check=False)
    elapsed_s = time.monotonic() - started
    said = ran.stdout + ran.stderr
    assert ran.returncode != 0, said
    assert "Traceback" not in said
    print(f"{elapsed_s:.1f} s: {ran.stderr.strip()}")
    assert elapsed_s < REFUSED_WITHIN_S
    return said


def test_an_unknown_field_is_named(kafka: KafkaBroker, topic: str, tmp_path: Path) -> None:
    """The file, the field's path, and what to do."""
    manifest = _manifest(kafka, topic)
    manifest["spec"]["processing"] = {"concurency": {"fixed": 8}}
    said = _refusal(manifest, tmp_path)
    assert "consumer.yaml" in said
    assert "spec.processing.concurency: unknown field; remove it or correct its spelling" in said


def test_a_missing_handler_is_named(kafka: KafkaBroker, topic: str, tmp_path: Path) -> None:
    """The field that is required."""
    manifest = _manifest(kafka, topic)
    del manifest["spec"]["handler"]
    assert "spec.handler: is required; add it" in _refusal(manifest, tmp_path)


@pytest.mark.parametrize(
    ("handler", "reason"),
    [
        ("no_such_module:on_record", "'no_such_module' cannot be imported"),
        ("tests.support.recording:no_such_function", "has no 'no_such_function'"),
        ("tests.support.recording:WORK_MS_ENV", "is not callable"),
        ("tests.support.recording:on_record_in_thread", "async def"),
    ],
)
def test_a_handler_that_cannot_be_used_is_named(
    kafka: KafkaBroker, topic: str, tmp_path: Path, handler: str, reason: str
) -> None:
    """spec.handler, and whether it is the module, the function or its kind."""
    manifest = _manifest(kafka, topic)
    manifest["spec"]["handler"] = handler
    said = _refusal(manifest, tmp_path)
    assert "spec.handler" in said
    assert reason in said


def test_an_unreachable_broker_is_named_within_15_seconds(kafka: KafkaBroker, topic: str, tmp_path: Path) -> None:
    """The field, the address, and what to check."""
    manifest = _manifest(kafka, topic)
    nobody = f"127.0.0.1:{free_ports(1)[0]}"
    manifest["spec"]["kafka"]["bootstrapServers"] = nobody
    said = _refusal(manifest, tmp_path)
    assert "spec.kafka.bootstrapServers" in said
    assert nobody in said


def test_a_topic_that_does_not_exist_is_named(kafka: KafkaBroker, topic: str, tmp_path: Path) -> None:
    """The field's index, the name, and what to do; for topics to read and topics to write."""
    manifest = _manifest(kafka, topic)
    manifest["spec"]["kafka"]["topics"] = [topic, f"{topic}-typo"]
    said = _refusal(manifest, tmp_path)
    assert f"spec.kafka.topics[1]: the topic '{topic}-typo' does not exist; create it" in said
    manifest = _manifest(kafka, topic)
    manifest["spec"]["results"] = {"topic": f"{topic}-nowhere"}
    assert "spec.results.topic" in _refusal(manifest, tmp_path)


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"enable.auto.commit": "true"}, "managed"),
        ({"plugin.library.paths": "/tmp/evil.so"}, "refused"),
        ({"sasl.password": "canary-secret"}, "refused"),
    ],
    ids=["managed", "loads code", "a secret"],
)
def test_a_refused_client_property_is_named(
    kafka: KafkaBroker, topic: str, tmp_path: Path, config: dict[str, str], reason: str
) -> None:
    """The field and the key, and why; never the value."""
    manifest = _manifest(kafka, topic)
    manifest["spec"]["kafka"]["config"] = config
    said = _refusal(manifest, tmp_path)
    assert "spec.kafka.config" in said
    assert next(iter(config)) in said
    assert reason in said
    assert "canary-secret" not in said


def test_a_property_that_librdkafka_does_not_know_is_named(kafka: KafkaBroker, topic: str, tmp_path: Path) -> None:
    """The field and the key."""
    manifest = _manifest(kafka, topic)
    manifest["spec"]["kafka"]["config"] = {"no.such.property": "1"}
    said = _refusal(manifest, tmp_path)
    assert "spec.kafka.config" in said
    assert "no.such.property" in said


@pytest.mark.parametrize(
    "metadata",
    ["not base64 at all", "bAAL", "TAAA", "ZQAAAAEAAAADAAAAAQAAAAE=" * 2, "bH//" + "/" * 1000],
    ids=["no base64", "cut off", "unknown first byte", "not a map", "beyond the log's end"],
)
def test_metadata_that_cannot_be_read_is_warned_of_and_the_records_handled_again(
    kafka: KafkaBroker, topic: str, group: str, tmp_path: Path, metadata: str
) -> None:
    """A warning with the partition, a counter in /metrics, and every record from the committed offset on is handled."""
    traffic = Traffic(kafka.bootstrap, topic)
    traffic.send((f"key-{number}", b"x") for number in range(400))
    ends = kafka.end_offsets(topic)
    kafka.commit(group, topic, {0: Committed(10, metadata)})
    spec = spec_for(kafka.bootstrap, topic, group, "on_record")
    with Members("unreadable", spec, tmp_path, work_ms=1) as members:
        members.start(0)
        status = members.wait_status(0, lambda status: status.lag == 0, "handled everything")
        assert status.metadata_errors == 1
        assert status.handled == sum(ends.values()) - 10
        assert status.skipped == 0
        assert "parallel_consumer_metadata_errors_total 1.0" in (members.get(0, "/metrics") or "")
        warned = f"{topic}[0]: the metadata committed at offset 10 cannot be read"
        wait_until(lambda: warned in members.process(0).text(), "the warning is logged", 5)
        assert "Traceback" not in members.process(0).text()
        assert members.terminate(0) == 0
