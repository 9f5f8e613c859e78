"""What is told at /metrics, and what telling it may cost."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from parallel_consumer_runtime.core import Ledger, PartitionKey
from parallel_consumer_runtime.handlers import Record
from parallel_consumer_runtime.kafka.positions import Start
from parallel_consumer_runtime.member import Member
from parallel_consumer_runtime.observe import Board, StatusServer
from tests.support.exposition import exposition, samples
from tests.support.waiting import wait_until

PREFIX = "parallel_consumer_"
CONNECTIONS = "parallel_consumer_status_connections"


@pytest.fixture
def server() -> Iterator[StatusServer]:
    """A server of three connections."""
    served = StatusServer(Board(), 0, "127.0.0.1", connections_max=3)
    served.start()
    yield served
    served.stop()


def test_connections_beyond_the_setting_are_refused_and_counted(server: StatusServer) -> None:
    """Three idle connections: a fourth is told 503 at once; when one has gone, the next is served."""
    with ExitStack() as stack:
        idle = [stack.enter_context(socket.create_connection(("127.0.0.1", server.port), 5)) for _ in range(3)]
        for _ in range(20):
            with socket.create_connection(("127.0.0.1", server.port), 5) as late:
                assert late.recv(100).startswith(b"HTTP/1.1 503 ")
        idle[0].close()

        def answers() -> bool:
            try:
                found = samples(server.port)
            except OSError:
                return False
            return found[CONNECTIONS, ()] == found[f"{CONNECTIONS}_max", ()] == 3

        wait_until(answers, "it is served", 10)
    assert samples(server.port)[f"{CONNECTIONS}_refused_total", ()] >= 20


def assign(member: Member, partitions: int) -> None:
    """Give a member partitions of one topic, the n-th with n records."""
    keys = [PartitionKey("orders", number) for number in range(partitions)]
    member.on_assigned([Start(key, 0, Ledger(0), readable=True, assignment=1) for key in keys])
    member.on_end_offsets({key: key.partition for key in keys})


def test_partitions_beyond_the_setting_share_one_label() -> None:
    """Of 500 partitions ten have labels of their own; the lag of the others is in one sum, and none of it is lost."""
    found = exposition(lambda member: assign(member, 500), spec__monitoring={"partitions": 10})
    lags = {labels: value for (name, labels), value in found.items() if name == f"{PREFIX}lag"}
    assert set(lags) == {(str(number), "orders") for number in range(10)} | {("others", "")}
    assert sum(lags.values()) == sum(range(500))
    committed = [labels for name, labels in found if name == f"{PREFIX}committed_offset"]
    assert len(committed) == 10
    assert found[f"{PREFIX}partitions", ()] == 500
    assert found[f"{PREFIX}measured_partitions", ()] == found[f"{PREFIX}measured_partitions_max", ()] == 10


def test_what_is_held_is_told_beside_its_bound() -> None:
    """Records in two partitions: the figures are theirs, the bounds the manifest's."""

    def offered(member: Member) -> None:
        assign(member, 2)
        for number, count in enumerate((3, 5)):
            key = PartitionKey("orders", number)
            member.on_batch({key: [Record(*key, offset, b"k", b"12345", 0, ()) for offset in range(count)]})

    buffer = {"records": 70, "recordsPerPartition": 50, "bytes": "7Ki", "bytesPerPartition": "5Ki"}
    processing = {"buffer": buffer, "concurrency": {"min": 2, "max": 9}, "paused": True}
    changes = {"spec__processing": processing, "spec__kafka__offsetMetadataMaxBytes": 1024}
    found = exposition(offered, **changes)
    expected = {
        "buffered": (8, 70),
        "buffered_bytes": (48, 7168),
        "partition_buffered": (5, 50),
        "partition_buffered_bytes": (30, 5120),
        "concurrency": (2, 9),
        "in_flight": (0, 2),
        "map_gaps": (1, 64),
        "map_span": (0, 4000),
        "handed_over": (0, 2),
        "fetched_bytes": (0, 16 * 1024**2),
        "producing_bytes": (0, 64 * 1024**2),
        "rate_keys": (0, 100_000),
    }
    assert {name: (found[PREFIX + name, ()], found[f"{PREFIX}{name}_max", ()]) for name in expected} == expected
    assert found[f"{PREFIX}threads", ()] >= 1
