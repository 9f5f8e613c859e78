"""One run of one seed: a topic that moves, a consumer that commits, operators that die, and the promises, checked as it goes."""

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise

from parallel_consumer_operator.windows.cutting import LOG_BEHIND, OFFSETS_LOST
from parallel_consumer_operator.windows.model import Ask, Entry, Ledger, Place, Run, Sample, TopicOffsets, Trigger, Wait
from parallel_consumer_runtime.settings.offsets import TopicRole
from parallel_consumer_runtime.settings.window import WindowKafka, WindowSpec
from tests.support.windows_simulation.cluster import Cluster
from tests.support.windows_simulation.operators import Operator

STEPS = 400
CALM_ROUNDS = 400
INPUT, RESULTS = "input", "results"


class BrokenError(AssertionError):
    """A promise does not hold."""


class World:
    """Everything there is, for one entry of one consumer.

    Args:
        seed: decides everything.
    """

    def __init__(self, seed: int) -> None:
        self.dice = dice = random.Random(seed)
        self.now = 1_000_000.0
        self.counts: Counter[str] = Counter()
        self.cluster = Cluster()
        self.source = dice.choice((TopicRole.INPUT, TopicRole.RESULTS))
        self.topic = INPUT if self.source is TopicRole.INPUT else RESULTS
        self.entry = Entry(
            name="archive",
            consumer="flights",
            consumer_uid="uid",
            kafka=WindowKafka(bootstrap_servers="kafka:9092"),
            source=self.source,
            trigger=self._trigger(),
            from_earliest=dice.random() < 0.3,
            offsets_max=dice.choice((1, 7, 1000)),
            skip_lost=dice.random() < 0.5,
            successful_kept=dice.choice((0, 1, 3)),
            failed_kept=dice.choice((0, 1)),
            retry_after_s=2.0,
            retry_after_max_s=10.0,
        )
        self.topic_id = 1
        self.partitions = dice.choice((1, 2, 4))
        self.log_start = [0] * self.partitions
        self.committed: list[int] = [0] * self.partitions
        """Acknowledged commits of the input."""
        self.result_of: list[list[tuple[int, int]]] = [[] for _ in range(self.partitions)]
        """By input partition and offset: where its result is."""
        self.ends = [0] * 2
        """Of the result topic."""
        self.result_start = [0] * 2
        self.produced: dict[Place, int] = {}
        """What the pods of now know of."""
        self.behind = 0
        """How much lower the broker tells the ends of the results."""
        self.silent = False
        self.unreported: set[int] = set()
        self.promised: list[tuple[WindowSpec, dict[int, int]]] = []
        """Windows and the commits that their samples had read; the results of everything below are in them or before."""
        self.baseline: dict[int, int] = {}
        self.excused_back = False
        self.operators = [Operator(self)]
        self._chances = {name: dice.choice((0.0, 0.3, 1.0)) for name in self._events()}

    def run(self) -> Counter[str]:
        """Run both phases.

        Raises:
            BrokenError: a promise does not hold.
        """
        events = self._events()
        rare = [name for name in events if self.dice.random() < self._chances[name]]
        for _ in range(STEPS):
            self.now += self.dice.choice((0.1, 0.5, 3.0))
            draw = self.dice.random()
            if draw < 0.5:
                self.dice.choice(self.operators).step()
            elif draw < 0.65:
                self._consume()
            elif draw < 0.8:
                self._work()
            elif rare:
                events[self.dice.choice(rare)]()
        self._calm()
        return self.counts

    def note(self, what: str) -> None:
        """Count what happened."""
        self.counts[what] += 1

    # What operators read

    def sample(self, asked_at: float) -> Sample:
        """Return what the pods report."""
        if self.silent:
            return Sample(at=self.now, committed={}, asked_at=asked_at, silent="no pod answers")
        committed = {Place(INPUT, p): offset for p, offset in enumerate(self.committed) if p not in self.unreported}
        lag = sum(len(results) - done for results, done in zip(self.result_of, self.committed, strict=True))
        return Sample(
            at=self.now, committed=committed, produced=dict(self.produced), lag=max(lag, 0), asked_at=asked_at
        )

    def asked(self, sample: Sample) -> Sample:
        """Return the sample with the broker's offsets of now."""
        return replace(sample, broker=self._broker())

    def _broker(self) -> Mapping[str, TopicOffsets]:
        if self.source is TopicRole.INPUT:
            parts = {
                p: (self.log_start[p], max(len(self.result_of[p]), self.committed[p])) for p in range(self.partitions)
            }
        else:
            # A broker that has just begun to lead a partition may tell a lower end.
            parts = {
                p: (self.result_start[p], max(self.result_start[p], end - self.behind))
                for p, end in enumerate(self.ends)
            }
        return {self.topic: TopicOffsets(str(self.topic_id), parts)}

    # What operators do

    def kept(self, before: Ledger | None, after: Ledger) -> None:
        """A ledger was written."""
        if before is None and not after.sequence:
            self.note("baseline taken")
            if not self.baseline:
                self.baseline = dict(after.topics[self.topic].ends)
        elif before is None:
            self.note("ledger made again from the last run")
        elif after.sequence > before.sequence:
            self.note("window adopted" if after.sequence > before.sequence + 1 else "window recorded")
        if after.skipped > (0 if before is None else before.skipped):
            self.note("lost offsets skipped")

    def cut(self, sample: Sample, window: WindowSpec) -> None:
        """A window is about to be created."""
        self.note("run again" if window.retry else f"window cut: {window.cause}")
        if window.offsets == self.entry.offsets_max:
            self.note("window as large as it may be")  # the rest comes next: it promises nothing
        elif not window.retry:
            committed = {place.partition: offset or 0 for place, offset in sample.committed.items()}
            self.promised.append((window, committed))

    def deleted(self, run: Run) -> None:
        """A run is about to be deleted."""
        self.note("run of the history deleted" if run.finished else "stray run deleted")
        if run.started and not run.finished:
            raise BrokenError(f"{run.name} runs, and is deleted")

    def waited(self, wait: Wait | Ask) -> None:
        """An operator has nothing to do."""
        if isinstance(wait, Wait):
            self.note(f"waited: {wait.standing.reason}")

    # What happens

    def _events(self) -> dict[str, Callable[[], None]]:
        return {
            "die": self._die,
            "split": self._split,
            "silence": self._silence,
            "unreport": self._unreport,
            "grow": self._grow,
            "retain": self._retain,
            "restart pods": self._restart_pods,
            "lead": self._lead,
            "foreign": self._foreign,
            "lose ledger": self._lose_ledger,
            "old ledger": self._old_ledger,
            "delete run": self._delete_run,
            "suspend": self._suspend,
            "ask": self._ask_by_hand,
        }

    def _trigger(self) -> Trigger:
        dice = self.dice
        return Trigger(
            offsets=dice.choice((None, 1, 5)),
            interval_s=dice.choice((None, 4.0, 60.0)),
            schedule=dice.choice((None, "* * * * *")),
            on_drain=dice.random() < 0.3,
            manual=dice.choice((None, "a")),
        )

    def _consume(self) -> None:
        """A record is handled: its result is acknowledged, then it is committed, now or later."""
        p = self.dice.randrange(self.partitions)
        if self.dice.random() < 0.7:
            q = self.dice.randrange(len(self.ends))
            self.result_of[p].append((q, self.ends[q]))
            self.ends[q] += 1
            self.produced[Place(RESULTS, q)] = self.ends[q]
        ready = len(self.result_of[p])
        if self.committed[p] < ready and self.dice.random() < 0.8:
            self.committed[p] = self.dice.randint(self.committed[p] + 1, ready)

    def _work(self) -> None:
        """Runs begin and end."""
        names = list(self.cluster.runs)
        if not names:
            return
        name = self.dice.choice(names)
        run = self.cluster.runs[name]
        if not run.started:
            if self.cluster.begin(name):
                self.note("run began")
        elif not run.finished:
            self.cluster.end(name, self.now, succeeded=self.dice.random() < 0.7)
            self.note("run ended")

    def _die(self) -> None:
        self.note("operator died")
        self.operators[self.dice.randrange(len(self.operators))] = Operator(self)

    def _split(self) -> None:
        if len(self.operators) < 3:
            self.note("second operator")
            self.operators.append(Operator(self))
        else:
            self.operators.pop(0)

    def _silence(self) -> None:
        self.note("pods silent")
        self.silent = not self.silent

    def _unreport(self) -> None:
        self.note("partition reported by nobody")
        self.unreported = {p for p in range(self.partitions) if self.dice.random() < 0.5}

    def _grow(self) -> None:
        if self.partitions < 6:
            self.note("partition added")
            self.partitions += 1
            self.log_start.append(0)
            self.committed.append(0)
            self.result_of.append([])

    def _retain(self) -> None:
        self.note("log cut off by retention")
        p = self.dice.randrange(self.partitions)
        self.log_start[p] = min(len(self.result_of[p]), self.log_start[p] + self.dice.randrange(4))
        q = self.dice.randrange(len(self.ends))
        self.result_start[q] = min(self.ends[q], self.result_start[q] + self.dice.randrange(2))

    def _restart_pods(self) -> None:
        if not self.behind:
            self.note("pods restarted")
            self.produced = {}

    def _lead(self) -> None:
        """Another broker leads; its pods live on, or nobody could know what was acknowledged."""
        self.behind = 0 if self.behind or not self.produced else 1

    def _foreign(self) -> None:
        self.note("foreign record among the results")
        if not self.behind:
            self.ends[self.dice.randrange(len(self.ends))] += 1

    def _lose_ledger(self) -> None:
        """Lost while a run could tell of it; without any, nobody can know where the last window ended."""
        if self.cluster.ledger is not None and self._newest_tells(Ledger.read(self.cluster.ledger.text)):
            self.note("ledger lost")
            self.cluster.ledger = None

    def _old_ledger(self) -> None:
        if self.cluster.ledger is not None:
            self._saved = getattr(self, "_saved", None)
            now = Ledger.read(self.cluster.ledger.text)
            if self._saved is None or self.dice.random() < 0.5:
                self._saved = now
            elif self._newest_tells(now):
                self.note("old ledger restored")
                self.cluster.keep(self._saved, self.cluster.ledger.version)

    def _newest_tells(self, ledger: Ledger) -> bool:
        """Whether a run is there from which the ledger's last window can be read."""
        return any(run.window.sequence == ledger.sequence and run.started for run in self.cluster.runs.values())

    def _ledger_knows(self) -> bool:
        """Whether nothing is known by runs alone."""
        kept = self.cluster.ledger
        return kept is not None and Ledger.read(kept.text).sequence >= max(
            (run.window.sequence for run in self.cluster.runs.values() if run.started), default=0
        )

    def _delete_run(self) -> None:
        """By its user's hand. The last window's is left: it is what tells, should the ledger be lost."""
        over = [run for run in self.cluster.runs.values() if not run.started or run.failed]
        if over and self._ledger_knows():
            self.note("run deleted by hand")
            self.cluster.delete(self.dice.choice(over))

    def _suspend(self) -> None:
        self.note("suspended or resumed")
        self.entry = replace(self.entry, suspended=not self.entry.suspended)

    def _ask_by_hand(self) -> None:
        self.note("window asked for by hand")
        trigger = replace(self.entry.trigger, manual=str(self.dice.random()))
        self.entry = replace(self.entry, trigger=trigger)

    # The promises

    def _calm(self) -> None:
        """No faults any more: everything that is committed must come into windows that succeed."""
        self.silent, self.unreported, self.behind = False, set(), 0
        self.entry = replace(
            self.entry, suspended=False, trigger=Trigger(interval_s=1.0), offsets_max=1000, skip_lost=True
        )
        self.operators = [Operator(self)]
        for p in range(self.partitions):
            self.committed[p] = len(self.result_of[p])
        for _ in range(CALM_ROUNDS):
            self.now += 3.0
            for _ in range(8):
                self.operators[0].step()
            for name in list(self.cluster.runs):
                run = self.cluster.runs.get(name)
                if run is None or run.finished:
                    continue
                if run.started:
                    self.cluster.end(name, self.now, succeeded=True)
                else:
                    self.cluster.begin(name)
            if self._covered():
                break
        else:
            raise BrokenError(f"not everything came into a window: {self.cluster.ledger}")
        self._judge()

    def _ends(self) -> dict[int, int]:
        return dict(enumerate(self.committed if self.source is TopicRole.INPUT else self.ends))

    def _covered(self) -> bool:
        kept = self.cluster.ledger
        if kept is None:
            return False
        ledger = Ledger.read(kept.text)
        return ledger.open is None and all(ledger.start(Place(self.topic, p)) == end for p, end in self._ends().items())

    def _judge(self) -> None:
        """Each offset from the baseline on is in exactly one window, or was lost to retention; results come in time."""
        by_number: dict[int, WindowSpec] = {}
        for window in self.cluster.began:
            known = by_number.setdefault(window.sequence, window)
            if known.topics != window.topics:
                raise BrokenError(
                    f"window {window.sequence} ran with other offsets: {known.topics} and {window.topics}"
                )
        done = {window.sequence for window in self.cluster.done}
        if missing := by_number.keys() - done:
            raise BrokenError(f"windows {sorted(missing)} began and never succeeded")
        spans: dict[int, list[tuple[int, int, int]]] = {}
        for number in sorted(done):
            for part in by_number[number].topics[0].partitions:
                spans.setdefault(part.partition, []).append((part.start, part.end, number))
        for partition, found in spans.items():
            self._contiguous(partition, found)
        if self.source is not TopicRole.INPUT:
            self._results_in_time(by_number)

    def _contiguous(self, partition: int, found: list[tuple[int, int, int]]) -> None:
        lost = (self.log_start if self.source is TopicRole.INPUT else self.result_start)[partition]
        first = found[0]
        if first[0] > max(self.baseline.get(partition, 0), lost):
            raise BrokenError(f"partition {partition}: {first[0]} is above its baseline {self.baseline}")
        for (_, end, number), (start, _, after) in pairwise(found):
            if start < end:
                raise BrokenError(f"partition {partition}: windows {number} and {after} overlap at {start}")
            if start > max(end, lost) or (start > end and start > lost):
                raise BrokenError(f"partition {partition}: a gap from {end} to {start} before window {after}")

    def _results_in_time(self, by_number: dict[int, WindowSpec]) -> None:
        """Every result of an input below the commits that a window's sample had read lies below the window's end."""
        for window, committed in self.promised:
            known = by_number.get(window.sequence)
            if known is None or known.topics != window.topics:
                continue  # it never ran
            ends = {part.partition: part.end for part in window.topics[0].partitions}
            for partition, offset in committed.items():
                for q, at in self.result_of[partition][:offset]:
                    if at >= ends.get(q, 0):
                        words = f"window {window.sequence}: the result of {partition}@{offset} lies above its end"
                        raise BrokenError(words)


EXPECTED = (
    *(
        "baseline taken",
        "window recorded",
        "window adopted",
        "ledger made again from the last run",
        "lost offsets skipped",
    ),
    *("run again", "window as large as it may be", "run of the history deleted", "stray run deleted", "operator died"),
    *(
        "second operator",
        "write refused: somebody else was faster",
        "old ledger restored",
        "ledger lost",
        "partition added",
    ),
    *(
        "window cut: Offsets",
        "window cut: Interval",
        "window cut: Schedule",
        "window cut: OnDrain",
        "window cut: Manual",
    ),
    *(
        f"waited: {OFFSETS_LOST}",
        f"waited: {LOG_BEHIND}",
        "waited: PodsDoNotAnswer",
        "waited: WaitingForBaseline",
        "waited: Suspended",
    ),
)
