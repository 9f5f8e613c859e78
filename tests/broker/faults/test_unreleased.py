"""KIP-848 holds a killed member's place until its session ends: the successor is told so and ends."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.group_run import steady_spec
from tests.support.kafka import KafkaBroker
from tests.support.members import Members

pytestmark = pytest.mark.acceptance

ENDED_MAX_S = 30.0


@pytest.mark.proves(27)
def test_a_successor_whose_place_is_held_ends_instead_of_looking_ready(
    kafka: KafkaBroker, topic: str, group: str, tmp_path: Path, figure: Callable[[object], None]
) -> None:
    """It ends with a status and with the broker's reason, which names the instance id."""
    spec = steady_spec(kafka.bootstrap, topic, group, groupProtocol="Consumer")
    with Members("held", spec, tmp_path) as members:
        members.start(0)
        members.wait_status(0, lambda status: len(status.partitions) == 4, "owns everything")
        members.kill(0)
        successor, began = members.start(0).process, time.monotonic()
        assert members.reap(0, ENDED_MAX_S) not in {0, None}
        assert "instance" in successor.text()
        assert "Traceback" not in successor.text()
    figure(f"the successor ended after {time.monotonic() - began:.1f} s")
