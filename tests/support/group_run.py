"""One group under a steady load while a test hurts it: members, feeder and commit watch, and the verdict at the end."""

import itertools
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from parallel_consumer_runtime.settings import MemberStatus, ParallelConsumerSpec
from tests.support.checkers import (
    CommitsGoForward,
    KeyOrder,
    NothingInvented,
    NothingLost,
    NoZombies,
    OneAtATime,
    Violation,
    judge,
    report,
)
from tests.support.commit_watch import CommitWatch
from tests.support.excuses import Excuse, OnlyExcusedRepeats, unaware_calls, without_calls
from tests.support.history import Event, Life, read_history
from tests.support.kafka import KafkaBroker
from tests.support.members import Members, spec_for
from tests.support.traffic import Feeder, Traffic
from tests.support.waiting import wait_until

COMMIT_INTERVAL_S = 0.1
COMMIT_LATENCY_S = 0.3
"""What a commit takes at most on a busy machine, beside the coordinator's slowest answer in the run."""
SETTLE_TIMEOUT_S = 90.0
TEMPORARY = 75
"""The status of a process that another start may mend."""


class GroupRun:
    """Members that consume a topic at a steady rate, from enter to exit.

    Args:
        kafka: the broker, by its direct address.
        topic: what is consumed; keys are spread over its partitions.
        group: the group's name.
        folder: for the history and the members' output.
        spec: what the members run; see `load`.
        replicas: how many are started on entering.
        keys: how many different keys.
        work_ms: how long each call takes.
        backlog: how many records are kept ahead.
    """

    def __init__(
        self,
        kafka: KafkaBroker,
        topic: str,
        group: str,
        folder: Path,
        *,
        spec: ParallelConsumerSpec,
        replicas: int = 3,
        keys: int = 100,
        work_ms: float = 10.0,
        backlog: int = 10_000,
    ) -> None:
        self.kafka = kafka
        self.topic = topic
        self.group = group
        self.excuses: list[Excuse] = []
        self.members = Members("run", spec.model_copy(update={"replicas": replicas}), folder, work_ms=work_ms)
        self.traffic = Traffic(kafka.bootstrap, topic, self.members.history)
        self.watch = CommitWatch(kafka.bootstrap, group, topic, self.members.history)
        self._replicas = replicas
        records = ((f"key-{number % keys}", b"x" * 100) for number in itertools.count())
        self._feeder = Feeder(self.traffic, records, backlog, lambda: self.watch.total)
        self._began = time.monotonic()

    def running(self, ordinal: int, handled: int = 1) -> MemberStatus:
        """Return a member's status once it has handled so many records in this life."""
        return self.members.wait_status(ordinal, lambda status: status.handled >= handled, f"handled {handled}")

    @contextmanager
    def excused(self, what: str, life: Life | None = None) -> Generator[None]:
        """Excuse repeats of calls that a fault left uncommitted; the block lasts until everybody knows of it."""
        began = time.monotonic_ns()
        yield
        self.excuses.append(Excuse(what, life, began, time.monotonic_ns()))

    def revive(self, what: str, since_ns: int) -> int:
        """Start anew, as a kubelet does, what ended by itself with a temporary error; excuse what that repeats.

        Args:
            what: the fault, in the words of the excuse.
            since_ns: when it began, monotonic nanoseconds.

        Returns:
            How many were started.
        """
        ended = [ordinal for ordinal in self.members.ordinals() if self.members.process(ordinal).exit_code == TEMPORARY]
        for ordinal in ended:
            life = self.members.life(ordinal)
            self.members.reap(ordinal)
            self.excuses.append(Excuse(what, life, since_ns, time.monotonic_ns()))
            self.members.start(ordinal)
        return len(ended)

    def resumed(
        self, timeout_s: float, *, since: Mapping[int, int] | None = None, tend: Callable[[], object] = lambda: None
    ) -> float:
        """Return the seconds until the commits of every partition moved on from now, or from `since`.

        Args:
            timeout_s: how long to wait.
            since: the commits to move on from; those of now without.
            tend: called again and again meanwhile.

        Raises:
            ConditionTimeoutError: one stood still; holds the members' last lines.
        """
        before = dict(self.watch.committed if since is None else since)
        began = time.monotonic()

        def moved() -> bool:
            tend()
            now = self.watch.committed
            return bool(before) and all(now.get(partition, 0) > offset for partition, offset in before.items())

        def state() -> str:
            stuck = [p for p, offset in before.items() if self.watch.committed.get(p, 0) <= offset]
            return f"partitions {stuck} stand still\n" + "\n".join(self.members.tails())

        wait_until(moved, "every partition moved on", timeout_s, state=state)
        return time.monotonic() - began

    def bounce(self) -> None:
        """Kill the broker and start it again; return once it answers."""
        with self.watch.away():
            self.kafka.kill()
            self.kafka.start()

    def settle(self) -> None:
        """Wait until everything that was produced is committed; call it after the load ended."""
        wait_until(
            lambda: self.watch.total >= self.traffic.produced,
            f"all of {self.traffic.produced} records are committed",
            SETTLE_TIMEOUT_S,
            state=lambda: f"{self.watch.committed}\n" + "\n".join(self.members.tails()),
        )

    @contextmanager
    def load(self) -> Generator[Self]:
        """Start the members, keep them busy for the block, then let them finish and end them in order."""
        with self.members, self.watch:
            for ordinal in range(self._replicas):
                self.members.start(ordinal)
            for ordinal in range(self._replicas):
                self.members.wait_status(ordinal, lambda status: bool(status.partitions), "owns partitions")
            with self._feeder:
                wait_until(lambda: self.watch.total > 0, "the first commit is seen", SETTLE_TIMEOUT_S)
                yield self
            self.settle()
            for ordinal in self.members.ordinals():
                assert self.members.terminate(ordinal) == 0

    def judged(self, figure: Callable[[object], None], *, told: Sequence[Any] = ()) -> list[Event]:
        """Assert G1 to G6 over the whole history, and print what the faults cost; return the history."""
        events = read_history(self.members.history_path)
        commit_s = COMMIT_INTERVAL_S + COMMIT_LATENCY_S + self.watch.slowest_s
        repeats = OnlyExcusedRepeats(self.excuses, commit_s=commit_s)
        reached = without_calls(events, self.excuses)
        violations: list[Violation] = [
            *judge(events, [NothingLost(), NothingInvented(), CommitsGoForward(), NoZombies(), repeats]),
            *judge(reached, [KeyOrder(), OneAtATime()]),
        ]
        costs = ", ".join(f"{count} by {what}" for what, count in repeats.counts(events).items()) or "none"
        figure(
            f"{self.traffic.produced} records, {time.monotonic() - self._began:.0f} s; handled again: {costs}; "
            f"begun before a member knew of its loss: {unaware_calls(events, self.excuses)}; slowest answer {self.watch.slowest_s * 1000:.0f} ms"
        )
        for line in told:
            figure(line)
        assert not violations, report(violations)
        return events


def lasting(seconds: float) -> None:
    """Let a fault last: its own duration, not a way to wait for something."""
    time.sleep(seconds)


def steady_spec(
    bootstrap: str, topic: str, group: str, *, results: str | None = None, **kafka: Any
) -> ParallelConsumerSpec:
    """Return the spec of a steady load: ten records at once for each member; keyword arguments go into `spec.kafka`."""
    processing: dict[str, Any] = {"concurrency": {"fixed": 10}, "commitInterval": "100ms"}
    handler = "on_record" if results is None else "with_result"
    spec = spec_for(bootstrap, topic, group, handler, results=results, **processing)
    changed = {**spec.kafka.model_dump(mode="json", by_alias=True, exclude_unset=True), **kafka}
    return spec.model_copy(update={"kafka": type(spec.kafka).model_validate(changed)})
