"""Handlers slower than max.poll.interval.ms, and buffers that stay full: polling goes on, nobody is evicted."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.group_run import steady_spec
from tests.support.history import Revoked, Start, read_history
from tests.support.kafka import KafkaBroker
from tests.support.members import Members
from tests.support.scale import scaled
from tests.support.traffic import Traffic

pytestmark = pytest.mark.acceptance

HANDLER_S = scaled(15.0, 60.0)
"""Every run takes a quarter of the minute; both are longer than what librdkafka allows between two polls."""
POLL_INTERVAL_MAX_S = 10
RECORDS = 40
CONCURRENCY = 20


@pytest.mark.timeout(scaled(200, 500))
@pytest.mark.proves(2, 24)
def test_slow_handlers_cost_no_membership(
    kafka: KafkaBroker, topic: str, group: str, tmp_path: Path, figure: Callable[[object], None]
) -> None:
    """Coroutines and threads: two rounds of slow calls, and at the broker the same member in the same generation."""
    kafka_settings: dict[str, Any] = {
        "sessionTimeout": f"{POLL_INTERVAL_MAX_S}s",
        "consumerConfig": {"max.poll.interval.ms": str(POLL_INTERVAL_MAX_S * 1000)},
    }
    with ExitStack() as stack:
        running: list[tuple[Members, str, int | None]] = []
        Traffic(kafka.bootstrap, topic).send((f"key-{n}", b"x") for n in range(RECORDS))
        for worker, handler in (("Async", "on_record"), ("Thread", "on_record_in_thread")):
            name = f"{group}-{worker.lower()}"
            spec = steady_spec(kafka.bootstrap, topic, name, **kafka_settings)
            settings = {
                **spec.processing.model_dump(mode="json", by_alias=True, exclude_unset=True),
                "worker": worker,
                "concurrency": {"fixed": CONCURRENCY},
                "buffer": {"records": CONCURRENCY, "recordsPerPartition": CONCURRENCY // 2},
            }
            processing = type(spec.processing).model_validate(settings)
            update = {"handler": f"tests.support.recording:{handler}", "processing": processing}
            folder = tmp_path / worker
            folder.mkdir()
            members = stack.enter_context(
                Members("slow", spec.model_copy(update=update), folder, work_ms=HANDLER_S * 1000)
            )
            members.start(0)
            members.wait_status(0, lambda status: status.in_flight == CONCURRENCY, "has its hands full")
            running.append((members, name, kafka.group(name).generation))
        for members, name, generation in running:
            members.wait_status(0, lambda status: status.lag == 0, "handled everything", 4 * HANDLER_S)
            view = kafka.group(name)
            assert (view.state, view.generation, len(view.members)) == ("STABLE", generation, 1)
            assert members.terminate(0) == 0
            events = read_history(members.history_path)
            assert not [event for event in events if type(event) is Revoked]
            assert len([event for event in events if type(event) is Start]) == RECORDS
    figure(
        f"{RECORDS} calls of {HANDLER_S:.0f} s with {POLL_INTERVAL_MAX_S} s between polls: no eviction, none repeated"
    )
