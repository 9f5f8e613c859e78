"""`pconsumer run` on the embedded broker: drains, follows edits, starts dead members again, ends in order."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from parallel_consumer_runtime.kafka.embedded import EmbeddedBroker
from parallel_consumer_runtime.local import LocalRun, ManifestError, MemberView
from tests.support.ports import free_ports
from tests.support.waiting import wait_until

RECORDS = 2_000
HANDLERS = """
import asyncio

async def slowly(record, context):
    await asyncio.sleep(0.002)

async def endlessly(record, context):
    await asyncio.sleep(600)

def plainly(record, context):
    return None
"""
MANIFEST = """
apiVersion: parallelconsumer.io/v1alpha1
kind: ParallelConsumer
metadata: {{name: small}}
spec:
  image: none
  handler: small_handlers:{handler}
  kafka: {{bootstrapServers: "{bootstrap}", groupId: small, topics: [small], sessionTimeout: 6s}}
  processing: {{concurrency: {{fixed: {fixed}}}, worker: {worker}, drainTimeout: 5s}}
"""


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    """One embedded broker for the module."""
    with EmbeddedBroker() as started:
        started.create_topics(["small"])
        producer = Producer({"bootstrap.servers": started.bootstrap})
        for number in range(RECORDS):
            producer.produce("small", b"x", str(number % 50).encode())
        assert producer.flush(30) == 0
        yield started


def write(folder: Path, bootstrap: str, *, fixed: int = 4, handler: str = "slowly", worker: str = "Async") -> Path:
    """Write handler and manifest; return the manifest's path."""
    (folder / "small_handlers.py").write_text(HANDLERS)
    path = folder / "small.yaml"
    path.write_text(MANIFEST.format(bootstrap=bootstrap, fixed=fixed, handler=handler, worker=worker))
    return path


@contextmanager
def running(path: Path) -> Generator[LocalRun]:
    """Run a manifest."""
    run = LocalRun(path)
    try:
        yield run
    finally:
        run.stop()


def until(run: LocalRun, what: str, probe: Callable[[MemberView], object]) -> MemberView:
    """Poll the run until its one member is as wanted."""

    def look() -> MemberView | None:
        assert run.failure() is None
        (member,) = run.poll()
        return member if probe(member) else None

    return wait_until(look, what, 30)


def test_follows_edits_and_starts_a_dead_member_again(broker: EmbeddedBroker, tmp_path: Path) -> None:
    """Concurrency follows the file; a killed member comes back under its name; the end is in order."""
    path = write(tmp_path, broker.bootstrap)
    with running(path) as run:
        until(run, "handles records", lambda m: m.status is not None and m.status.handled > 0)
        write(tmp_path, broker.bootstrap, fixed=9)
        seen = until(run, "applied the edit", lambda m: m.status is not None and m.status.concurrency == 9)
        assert seen.status is not None
        assert seen.status.rebalances == 0
        assert seen.status.revision == run.live.revision
        write(tmp_path, broker.bootstrap, fixed=9, handler="plainly")
        wait_until(lambda: (run.poll(), run.messages)[1][-1:] and "handler changed" in run.messages[-1], "said so", 10)
        os.kill(_pid(tmp_path), signal.SIGKILL)
        until(run, "came back and finished", lambda m: m.starts == 2 and run.drained())
        assert any("small-0 was ended by SIGKILL; it is started again in" in message for message in run.messages)


def test_the_command_drains_and_ends(broker: EmbeddedBroker, tmp_path: Path) -> None:
    """`--until-drained` ends with 0, in plain lines when piped; everything is committed."""
    path = write(tmp_path, broker.bootstrap, fixed=100, handler="plainly", worker="Thread")
    path.write_text(path.read_text().replace("groupId: small", "groupId: drained"))
    command = [str(Path(sys.executable).parent / "pconsumer"), "run", "-f", str(path), "--until-drained"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[-1] == "drained"
    assert "members 1/1" in ran.stdout
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "drained"})
    found = consumer.committed([TopicPartition("small", partition) for partition in range(4)], timeout=10)
    consumer.close()
    assert sum(partition.offset for partition in found) == RECORDS


def test_a_member_that_cannot_start_ends_the_run(broker: EmbeddedBroker, tmp_path: Path) -> None:
    """The reason is one line on stderr, with the field; the exit status is not 0."""
    path = write(tmp_path, broker.bootstrap, handler="missing")
    command = [str(Path(sys.executable).parent / "pconsumer"), "run", "-f", str(path)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 1
    assert "spec.handler: module 'small_handlers' has no 'missing'" in ran.stderr
    assert "Traceback" not in ran.stderr + ran.stdout


def test_a_broker_that_does_not_answer_ends_the_run(tmp_path: Path) -> None:
    """Within 15 seconds, naming the field and the address."""
    path = write(tmp_path, f"127.0.0.1:{free_ports(1)[0]}")
    began = time.monotonic()
    command = [str(Path(sys.executable).parent / "pconsumer"), "run", "-f", str(path)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 1
    assert ran.stderr.startswith("error: small-0: spec.kafka.bootstrapServers: no broker answers at")
    assert "Traceback" not in ran.stderr + ran.stdout
    assert time.monotonic() - began < 15


def test_a_second_signal_ends_without_waiting(broker: EmbeddedBroker, tmp_path: Path) -> None:
    """The first drains, for as long as the handlers take; the second does not."""
    path = write(tmp_path, broker.bootstrap, handler="endlessly")
    path.write_text(path.read_text().replace("groupId: small", "groupId: endless").replace("drainTimeout: 5s", ""))
    command = [str(Path(sys.executable).parent / "pconsumer"), "run", "-f", str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert any("in flight    4 of 4" in line for line in process.stdout)
    process.send_signal(signal.SIGINT)
    assert any(line.startswith("stopping:") for line in process.stdout)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert process.wait(15) == 0
    process.stdout.close()


def test_nothing_to_run_is_said(tmp_path: Path) -> None:
    """No replicas locally is a mistake, not a quiet view of nothing; so is an environment that cannot be had."""
    path = write(tmp_path, "x:1")
    plain = path.read_text()
    path.write_text(plain.replace("image: none", "image: none\n  replicas: 0"))
    with pytest.raises(ManifestError, match=r"spec\.replicas: is 0"):
        LocalRun(path)
    path.write_text(plain.replace("image: none", "image: none\n  env: [{name: POD_NAME}]"))
    with pytest.raises(ManifestError, match=r"spec\.env\[0\]\.name: POD_NAME is set by the runtime"):
        LocalRun(path)


def _pid(folder: Path) -> int:
    """Return the member's process id: the one whose environment names the folder as its handlers'."""
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            content = environ.read_bytes()
        except OSError:
            continue
        if f"PYTHONPATH={folder}".encode() in content and b"POD_NAME=small-0" in content:
            return int(environ.parent.name)
    raise AssertionError("no member runs")
