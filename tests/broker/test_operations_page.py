"""docs/operations.md: every command in it is run, in the page's order, as it stands there."""

import re
import shlex
from pathlib import Path

import pytest
import yaml

from tests.support.filling import Placed, fill
from tests.support.kafka import KafkaBroker
from tests.support.kafka_view import Committed
from tests.support.manifests import pconsumer
from tests.support.processes import REPOSITORY

PAGE = REPOSITORY / "docs" / "operations.md"
FIRST_TIME_MS = 1_767_322_800_000
"""2026-01-02T03:00:00Z; each record of a partition is one minute after the one before."""
HANDLER = """
async def on_order(record, context):
    with open("handled", "a") as file:
        print(context.member, record.partition, record.offset, file=file)
    return context.result(key=record.key, value=record.value)
"""


def commands() -> list[str]:
    """Return the lines of the page's console blocks."""
    blocks = re.findall(r"```console\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line]


@pytest.fixture
def topic(kafka: KafkaBroker, unique: str) -> str:
    """Return a new topic of 4 partitions that keeps records of long ago."""
    kafka.create_topic(unique, 4, {"retention.ms": "-1"})
    return unique


@pytest.mark.proves(31, 32)
def test_every_command_of_the_page_works(kafka: KafkaBroker, topic: str, group: str, tmp_path: Path) -> None:
    """On a stopped group with a manifest and its handler beside it; the group is where the resets left it."""
    fill(
        kafka.bootstrap,
        topic,
        (Placed(p, f"{n % 9}", b"x", FIRST_TIME_MS + 60_000 * n) for n in range(90) for p in range(4)),
    )
    kafka.create_topic(f"{topic}-results", 1)
    kafka.commit(group, topic, dict.fromkeys(range(4), Committed(80, "")))
    (tmp_path / "orders.py").write_text(HANDLER)
    spec = {
        "image": "orders:1",
        "handler": "orders:on_order",
        "kafka": {"bootstrapServers": kafka.bootstrap, "groupId": group, "topics": [topic]},
        "results": {"topic": f"{topic}-results"},
    }
    manifest = {
        "apiVersion": "parallelconsumer.io/v1alpha1",
        "kind": "ParallelConsumer",
        "metadata": {"name": "orders"},
    }
    (tmp_path / "consumer.yaml").write_text(yaml.safe_dump({**manifest, "spec": spec}))
    assert len(commands()) >= 8
    for command in commands():
        program, *arguments = shlex.split(command)
        assert program == "pconsumer"
        ran = pconsumer(*arguments, cwd=tmp_path)
        assert ran.returncode == 0, f"{command}\n{ran.stderr}"
        assert ran.stdout
    assert {p: c.offset for p, c in kafka.committed(group, topic).items()} == {0: 40, 1: 40, 2: 5, 3: 5}
    handled = [line.split() for line in (tmp_path / "handled").read_text().splitlines()]
    assert {member for member, _, _ in handled} == {"orders-replay"}
    assert len(handled) == 4 * 60 + 50
    assert kafka.end_offsets(f"{topic}-results") == {0: 50}
