"""Confluent's Parallel Consumer itself, as a peer: its codec to compare with, and a consumer to take over from.

Its jars come from Maven Central and the programs in `tests/broker/java` are compiled against them, once per recipe.
"""

import shutil
import signal
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from parallel_consumer_runtime.offsets import OffsetMap
from tests.support.cache import cached
from tests.support.history import End, Life, Start, read_so_far
from tests.support.processes import REPOSITORY, TiedProcess

SOURCES = REPOSITORY / "tests" / "broker" / "java"
BUILD_TIMEOUT_S = 600.0
ASK_TIMEOUT_S = 240.0
SIGTERM_EXIT = 143
"""What a JVM that SIGTERM ended exits with."""
FIRST_LIFE = Life("java", "1")
JVM_FLAGS = ("-Xmx512m", "-XX:+UseSerialGC", "-Xshare:auto", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")

ENCODINGS = {
    "BitSet": "BITSET_V1",
    "BitSetV2": "BITSET_V2",
    "RunLength": "RUNLENGTH_V1",
    "RunLengthV2": "RUNLENGTH_V2",
    "BitSetCompressed": "BITSET_V1_ZSTD",
    "BitSetV2Compressed": "BITSET_V2_ZSTD",
    "RunLengthCompressed": "RUNLENGTH_V1_ZSTD",
    "RunLengthV2Compressed": "RUNLENGTH_V2_ZSTD",
}
"""The library's names of the encodings, and ours."""


class Written(NamedTuple):
    """What the library makes of one map."""

    by_encoding: dict[str, str]
    """Our name of the encoding to its metadata."""
    committed: str
    """The one that it would commit."""


def java(program: str, *arguments: str) -> list[str]:
    """Return the command of a program in `tests/broker/java`, built when it was not yet.

    Raises:
        RuntimeError: Maven or the compiler failed; holds the end of their output.
    """
    folder = cached("java-peer", sorted([SOURCES / "pom.xml", *SOURCES.glob("*.java")]), _build)
    return ["java", *JVM_FLAGS, "-cp", f"{folder / 'jars'}/*:{folder / 'classes'}", program, *arguments]


def _build(folder: Path) -> None:
    shutil.copy(SOURCES / "pom.xml", folder)
    goal = ["dependency:copy-dependencies", f"-DoutputDirectory={folder / 'jars'}", "-DincludeScope=runtime"]
    sources = [str(path) for path in sorted(SOURCES.glob("*.java"))]
    _run(["mvn", "-B", "-q", "-f", str(folder / "pom.xml"), *goal])
    _run(
        [
            "javac",
            "-Werror",
            "-Xlint:all,-processing",
            "-cp",
            f"{folder / 'jars'}/*",
            "-d",
            f"{folder / 'classes'}",
            *sources,
        ]
    )


def _run(command: Sequence[str]) -> None:
    ran = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S, check=False)
    if ran.returncode:
        raise RuntimeError(f"{command[0]} failed with {ran.returncode}:\n{(ran.stdout + ran.stderr)[-3000:]}")


def java_encode(maps: Sequence[OffsetMap]) -> list[Written]:
    """Return what the library writes for each map."""
    answers = _ask(f"encode {one.base} {one.highest} {_ranges(one)}" for one in maps)
    return [_written(answer) for answer in answers]


def java_decode(lines: Sequence[tuple[int, str]]) -> list[OffsetMap]:
    """Return what the library reads from each (base, metadata)."""
    answers = _ask(f"decode {base} {metadata}" for base, metadata in lines)
    return [_read(base, answer) for (base, _), answer in zip(lines, answers, strict=True)]


def _ask(lines: Iterable[str]) -> list[str]:
    asked = list(lines)
    ran = subprocess.run(
        java("CodecPeer"),
        input="\n".join(asked) + "\n",
        capture_output=True,
        text=True,
        timeout=ASK_TIMEOUT_S,
        check=False,
    )
    answers = ran.stdout.splitlines()
    if ran.returncode or len(answers) != len(asked):
        raise RuntimeError(f"{len(answers)} answers to {len(asked)} lines:\n{ran.stderr[-3000:]}")
    for line, answer in zip(asked, answers, strict=True):
        if answer.startswith("!"):
            raise AssertionError(f"the library refuses {line[:200]!r}: {answer[2:]}")
    return answers


def _ranges(offsets: OffsetMap) -> str:
    return ",".join(f"{first}-{last}" for first, last in offsets.incomplete) or "-"


def _written(answer: str) -> Written:
    pairs = dict(pair.split("=", 1) for pair in answer.split(" "))
    committed = pairs.pop("smallest")
    return Written({ENCODINGS[name]: metadata for name, metadata in pairs.items()}, committed)


def _read(base: int, answer: str) -> OffsetMap:
    highest, _, ranges = answer.partition(" ")
    pairs = (pair.split("-") for pair in ranges.split(",") if ranges != "-")
    return OffsetMap(base, int(highest), tuple((int(first), int(last)) for first, last in pairs))


class Calls(NamedTuple):
    """What a handler did: (partition, offset) of each call, in the order of the file."""

    started: list[tuple[int, int]]
    done: list[tuple[int, int]]


class JavaConsumer:
    """The Parallel Consumer over one topic, in a process that dies with the tests. Its `process` stops cleanly on SIGTERM.

    Args:
        bootstrap: the broker.
        group: the group that it joins.
        topic: what it consumes, in key order.
        folder: for its output, and for its history when no other file is named.
        concurrency: records at once.
        work_min_ms: each call waits at least this long.
        work_max_ms: each call waits up to this long.
        life: its name in the history and at the broker (`client.id`).
        history: the file that it appends its calls to; others may write it too.
        commit_mode: the library's name of how it commits. Asynchronous is its default; a synchronous member may stop after a
            rebalance that met a commit.
        config: further settings of the Java client.
    """

    def __init__(
        self,
        bootstrap: str,
        group: str,
        topic: str,
        folder: Path,
        *,
        concurrency: int = 32,
        work_min_ms: int = 0,
        work_max_ms: int = 10,
        life: Life = FIRST_LIFE,
        history: Path | None = None,
        commit_mode: str = "PERIODIC_CONSUMER_SYNC",
        config: Mapping[str, str] | None = None,
    ) -> None:
        self.life = life
        self._history = history or folder / f"{life.member}.history"
        self._history.touch()
        arguments = [bootstrap, group, topic, concurrency, work_min_ms, work_max_ms, self._history, *life, commit_mode]
        arguments += [f"{name}={value}" for name, value in (config or {}).items()]
        output = folder / f"{life.member}.{life.incarnation}.log"
        self.process = TiedProcess(java("TakeoverConsumer", *map(str, arguments)), output)

    def calls(self) -> Calls:
        """Return what this life called so far; complete once the process ended."""
        events = [one for one in read_so_far(self._history) if isinstance(one, Start | End) and one.life == self.life]
        started = [(one.at.partition, one.at.offset) for one in events if isinstance(one, Start)]
        return Calls(started, [(one.at.partition, one.at.offset) for one in events if isinstance(one, End)])

    def stop(self, timeout_s: float) -> None:
        """Stop it cleanly: what was begun is finished and committed, and the member leaves the group."""
        self.process.send(signal.SIGTERM)
        code = self.process.wait(timeout_s)
        if code != SIGTERM_EXIT:
            raise AssertionError(f"{self.life.member} ended with {code}:\n{self.process.tail()}")
