"""`pconsumer offsets show` and `reset` on a real group: what they print, what they change, and when they refuse to."""

import json
from pathlib import Path

import pytest

from parallel_consumer_runtime.kafka.group_offsets import GroupBusyError, GroupOffsets
from parallel_consumer_runtime.kafka.librdkafka import Position
from parallel_consumer_runtime.offsets import OffsetMap, encode
from parallel_consumer_runtime.settings import render_static
from tests.support.filling import Placed, delete_below, fill
from tests.support.kafka import KafkaBroker
from tests.support.kafka_view import Committed
from tests.support.manifests import pconsumer, write_manifest
from tests.support.members import Members, spec_for
from tests.support.waiting import wait_until

FIRST_TIME_MS = 1_767_323_000_000
"""2026-01-02T03:03:20Z; each record of a partition is one second after the one before."""
MAP = encode(OffsetMap(40, 69, ((40, 40), (50, 54))))
COMMITS = {0: Committed(40, MAP), 1: Committed(90, ""), 2: Committed(10, "")}
"""Of 100 records in each of four partitions; partition 2's log begins at 20, partition 3 has no commit."""


@pytest.fixture
def topic(kafka: KafkaBroker, unique: str) -> str:
    """Return a new topic of 4 partitions that keeps records of long ago."""
    kafka.create_topic(unique, 4, {"retention.ms": "-1"})
    return unique


@pytest.fixture
def manifest(kafka: KafkaBroker, topic: str, group: str, tmp_path: Path) -> Path:
    """A manifest of a stopped group with a map, in a topic whose records have known times."""
    fill(
        kafka.bootstrap,
        topic,
        (Placed(p, f"key-{n % 7}", b"x", FIRST_TIME_MS + 1000 * n) for n in range(100) for p in range(4)),
    )
    delete_below(kafka.bootstrap, topic, {2: 20})
    kafka.commit(group, topic, COMMITS)
    return write_manifest(tmp_path, "orders", spec_for(kafka.bootstrap, topic, group, "on_record"))


@pytest.mark.proves(32)
def test_shows_where_a_group_stands(topic: str, group: str, manifest: Path) -> None:
    """Lag by the map, gaps, head of line, and what is wrong; the same for people's pipes and for programs."""
    ran = pconsumer("offsets", "show", "-f", str(manifest), "--json")
    assert ran.returncode == 0, ran.stderr
    shown = json.loads(ran.stdout)
    assert (shown["group"], shown["members"], shown["lag"]) == (group, [], 36 + 10 + 80 + 100)
    gone = "the committed offset is gone from the log: autoOffsetReset Earliest applies"
    fields = (
        "partition",
        "committed",
        "logStart",
        "logEnd",
        "lag",
        "incomplete",
        "completeAbove",
        "headOfLine",
        "note",
    )
    assert [tuple(row[field] for field in fields) for row in shown["partitions"]] == [
        (0, 40, 0, 100, 36, 6, 24, 40, ""),
        (1, 90, 0, 100, 10, 0, 0, 90, ""),
        (2, 10, 20, 100, 80, 0, 0, 20, gone),
        (3, None, 0, 100, 100, 0, 0, 0, ""),
    ]
    ran = pconsumer("offsets", "show", "-f", str(manifest))
    header, first, *_, last = ran.stdout.splitlines()
    assert header.split("\t")[:6] == ["TOPIC", "PARTITION", "COMMITTED", "LOG-START", "LOG-END", "LAG"]
    assert first.split("\t") == [topic, "0", "40", "0", "100", "36", "6", "24", "40", ""]
    assert last.split("\t")[2] == "-"


@pytest.mark.proves(32)
@pytest.mark.parametrize(
    ("options", "expected", "says"),
    [
        (["--to-earliest"], {0: 0, 1: 0, 2: 20, 3: 0}, "154 completed offsets {} handled again, 0 incomplete"),
        (["--to-latest"], {0: 100, 1: 100, 2: 100, 3: 100}, "0 completed offsets {} handled again, 226 incomplete"),
        (["--to-time", "2026-01-02T03:04:05Z"], {0: 45, 1: 45, 2: 45, 3: 45}, "65 completed offsets {} handled again"),
        (["--to-offset", "15"], {0: 15, 1: 15, 2: 20, 3: 15}, "124 completed offsets {} handled again, 15 incomplete"),
        (["--shift", "-50"], {0: 0, 1: 40, 2: 20}, "114 completed offsets {} handled again, 0 incomplete"),
        (["--shift", "20", "--partition", "0"], {0: 60, 1: 90, 2: 10}, "10 completed offsets {} handled again, 6 inc"),
    ],
    ids=["earliest", "latest", "time", "offset", "shift", "partition"],
)
def test_a_reset_is_dry_until_told(  # noqa: PLR0917 - pytest passes by name
    kafka: KafkaBroker,
    topic: str,
    group: str,
    manifest: Path,
    options: list[str],
    expected: dict[int, int],
    says: str,
) -> None:
    """The dry run prints what would move and moves nothing; with --execute exactly that is committed, without a map."""
    assert kafka.committed(group, topic) == COMMITS
    command = ("offsets", "reset", "-f", str(manifest), *options)
    dry = pconsumer(*command)
    assert dry.returncode == 0, dry.stderr
    assert dry.stderr.startswith("nothing was changed; with --execute ")
    assert says.format("would be") in dry.stderr, dry.stdout
    assert kafka.committed(group, topic) == COMMITS
    done = pconsumer(*command, "--execute")
    assert done.returncode == 0, done.stderr
    assert says.format("will be") in done.stderr
    assert done.stdout == dry.stdout
    after = kafka.committed(group, topic)
    assert {partition: one.offset for partition, one in after.items()} == expected
    chosen = {0} if "--partition" in options else set(expected)
    assert all(after[partition].metadata == "" for partition in chosen)
    printed = [line.split("\t") for line in done.stdout.splitlines()[1:]]
    assert {int(row[1]): int(row[3]) for row in printed if row[3] != "-"} == {p: expected[p] for p in chosen}


@pytest.mark.proves(32)
def test_what_is_clamped_says_so(manifest: Path) -> None:
    """An offset that the log does not hold, and a shift where nothing is committed."""
    rows = pconsumer("offsets", "reset", "-f", str(manifest), "--to-offset", "500").stdout.splitlines()[1:]
    assert all(row.split("\t")[-1] == "500 is not there yet: the log's end" for row in rows)
    rows = pconsumer("offsets", "reset", "-f", str(manifest), "--shift", "-45").stdout.splitlines()[1:]
    notes = [row.split("\t")[-1] for row in rows]
    assert notes == [
        "-5 is gone: the log's start",
        "",
        "-35 is gone: the log's start",
        "nothing is committed: there is nothing to shift from",
    ]


@pytest.mark.proves(32)
def test_a_running_group_is_refused(kafka: KafkaBroker, topic: str, group: str, manifest: Path, tmp_path: Path) -> None:
    """Members are named with what to do, nothing changes; once the last one is let go, the reset works."""
    spec = spec_for(kafka.bootstrap, topic, group, "on_record")
    spec = spec.model_copy(update={"kafka": spec.kafka.model_copy(update={"session_timeout": 6.0})})
    with Members("orders", spec, tmp_path, work_ms=0) as members:
        members.start(0)
        members.wait_status(0, lambda status: status.handled == 226, "handled what was left")
        wait_until(lambda: kafka.committed_total(group, topic) == 400, "committed", 30)
        for more in ((), ("--execute",)):
            refused = pconsumer("offsets", "reset", "-f", str(manifest), "--to-earliest", *more)
            assert (refused.returncode, refused.stdout) == (75, "")
            assert f"error: the group '{group}' is running, so that nothing was changed: orders-0 (" in refused.stderr
            assert "kubectl scale pcon orders --replicas 0" in refused.stderr
        # The broker itself refuses who commits without being a member: one that joined since the question is no gap.
        with GroupOffsets(render_static("orders", spec)) as offsets, pytest.raises(GroupBusyError, match="meanwhile"):
            offsets.commit([Position(topic, 0, 0, "")])
        shown = json.loads(pconsumer("offsets", "show", "-f", str(manifest), "--json").stdout)
        assert [member["name"] for member in shown["members"]] == ["orders-0"]
        assert shown["lag"] == 0
        assert kafka.committed_total(group, topic) == 400
        assert members.terminate(0) == 0
    wait_until(lambda: kafka.group(group).state == "EMPTY", "the member is let go", 30)
    assert pconsumer("offsets", "reset", "-f", str(manifest), "--to-earliest", "--execute").returncode == 0
    assert {p: one.offset for p, one in kafka.committed(group, topic).items()} == {0: 0, 1: 0, 2: 20, 3: 0}
