"""`make demo`: a manifest drains a topic, many records of each partition at once, its concurrency changed live.

Everything is real but the brokers, which are librdkafka's embedded ones: the loader, the manifest, the member process, the
results topic, and a checker that compares each result with a one-pass computation while they come in.
"""

import functools
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple, Self

from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from flights import checker, data, handlers, loader  # noqa: E402 - the line above makes them importable
from parallel_consumer_runtime.kafka.embedded import EmbeddedBroker  # noqa: E402 - as above
from parallel_consumer_runtime.local import LocalRun, MemberView  # noqa: E402 - as above
from parallel_consumer_runtime.local.view import View  # noqa: E402 - as above
from parallel_consumer_runtime.settings import MemberStatus  # noqa: E402 - as above

LOW, HIGH = 8, 200
SETTLE_S = 1.5
WINDOW_S = 4.0
"""One measurement at the low concurrency, seconds."""
WINDOWS_MIN, WINDOWS_MAX = 2, 6
"""Other programs take time from one window or another, never give any: the best one counts, and a machine that was
busy in all of the first gets more. A control beside it shows what the machine's timers allow meanwhile."""
DEADLINE_S = 120.0
POLL_INTERVAL_S = 0.5
EFFICIENCY_MIN = 0.95
SPEEDUP_MIN = 10.0
MEASURED_SHARE = 0.9


class Phase(NamedTuple):
    """A stretch of time at one concurrency."""

    began: MemberStatus
    ended: MemberStatus

    @property
    def rate(self) -> float:
        """Records per second, by the member's own clock."""
        return (self.ended.handled - self.began.handled) / (self.ended.at - self.began.at)


class Control:
    """Measures beside the run what so many calls at a time allow on this machine; a context manager."""

    def __init__(self, concurrency: int) -> None:
        command = [sys.executable, str(HERE / "control.py"), str(concurrency)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self._samples: list[tuple[float, int]] = []
        self._thread = threading.Thread(target=self._read, name="control", daemon=True)

    def rate(self, phase: Phase) -> float:
        """Return calls per second during a phase; 0 when nothing is known of it."""
        inside = [sample for sample in self._samples if phase.began.at <= sample[0] <= phase.ended.at]
        if len(inside) < 2:  # noqa: PLR2004 - a rate needs two
            return 0.0
        (began, first), (ended, last) = inside[0], inside[-1]
        return (last - first) / (ended - began)

    def _read(self) -> None:
        for line in self._process.stdout or ():
            at, calls = line.split()
            self._samples.append((float(at), int(calls)))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(10)
        self._thread.join(10)
        if self._process.stdout is not None:
            self._process.stdout.close()


class Background(threading.Thread):
    """A thread whose failure is not lost."""

    def __init__(self, name: str, work: Callable[[], object]) -> None:
        super().__init__(name=name, daemon=True)
        self._work = work
        self.failure: Exception | None = None

    def run(self) -> None:
        """Work, and keep what was raised."""
        try:
            self._work()
        except Exception as error:  # noqa: BLE001 - whatever it was, the demo must say it and end
            self.failure = error


class Demo:
    """One run of the demo."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.stopped = threading.Event()
        self.deadline = time.monotonic() + DEADLINE_S
        self.low: list[tuple[Phase, float]] = []
        """The windows at the low concurrency, each with what the control did meanwhile, calls per second."""
        self.high: Phase | None = None
        self.wanted = LOW
        self.control = Control(LOW)

    def main(self) -> bool:
        """Run everything; return whether all that was promised holds."""
        say = functools.partial(self.console.print, soft_wrap=True)
        say(f"Reading {data.FLIGHTS:,} flights, and computing in one pass what the handler must find.")
        flights = data.read()
        expected = checker.one_pass(flights)
        with ExitStack() as stack:
            stack.enter_context(self.control)
            broker = stack.enter_context(EmbeddedBroker())
            broker.create_topics([loader.TOPIC, checker.TOPIC])
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            manifest = folder / "consumer.yaml"
            text = (HERE / "consumer.yaml").read_text()
            manifest.write_text(text)
            say(
                f"Embedded broker at {broker.bootstrap}: topic flights, {loader.PARTITIONS} partitions, keyed by aircraft."
            )
            say(
                f"One member runs examples/flights/consumer.yaml; its handler awaits {handlers.CALL_S * 1000:g} ms per flight."
            )
            run = LocalRun(manifest, replicas=1, bootstrap=broker.bootstrap, handler_path=HERE)
            stack.callback(run.stop)
            judge = checker.Checker(broker.bootstrap, expected)
            feed = loader.Loader(broker.bootstrap, run.manifest.spec.kafka.group_id)
            threads = [
                Background("loader", lambda: feed.load(flights, self.stopped.is_set)),
                Background("checker", lambda: judge.run(self.stopped.is_set)),
            ]
            for thread in threads:
                thread.start()
            stack.callback(self._join, threads)
            stack.callback(self.stopped.set)
            with View("flights", self.console) as view:
                final = self._watch(run, view, manifest, text, threads)
            threads[1].join(max(0.1, self.deadline - time.monotonic()))
            return self._report(final, judge.verdict)

    def _watch(self, run: LocalRun, view: View, manifest: Path, text: str, threads: list[Background]) -> MemberStatus:
        """Follow the run through both phases to its end; return the member's last status."""
        began: MemberStatus | None = None
        while True:
            members = run.poll()
            view.update(members)
            view.tell(run.messages)
            if reason := run.failure() or next((str(t.failure) for t in threads if t.failure is not None), None):
                raise SystemExit(f"error: {reason}")
            if time.monotonic() > self.deadline:
                raise SystemExit(f"error: not done within {DEADLINE_S:g} s; {_shown(members)}")
            if (status := members[0].status) is None or status.first_handled_at is None:
                self.stopped.wait(POLL_INTERVAL_S)
                continue
            began = self._advance(status, began, view, manifest, text)
            if status.handled >= data.FLIGHTS and status.lag == 0:
                return status
            self.stopped.wait(POLL_INTERVAL_S)

    def _advance(
        self, status: MemberStatus, began: MemberStatus | None, view: View, manifest: Path, text: str
    ) -> MemberStatus | None:
        """Begin and end the measured stretches; return where the present one began."""
        if began is None:
            settled = status.first_handled_at is not None and status.at - status.first_handled_at > SETTLE_S
            return status if status.concurrency == self.wanted and settled else None
        if self.wanted == HIGH:
            # Up to nine tenths of the topic: the last records are fewer than the places for them.
            if status.at > began.at and status.handled <= data.FLIGHTS * MEASURED_SHARE:
                self.high = Phase(began, status)
            return began
        if status.at - began.at < WINDOW_S:
            return began
        window = Phase(began, status)
        self.low.append((window, self.control.rate(window)))
        rate, allowed = self._best_low()
        enough = len(self.low) >= WINDOWS_MIN and rate >= EFFICIENCY_MIN * allowed > 0
        if not enough and len(self.low) < WINDOWS_MAX:
            return status
        view.say(f"Editing the manifest while it runs, as kubectl apply would: concurrency {LOW} -> {HIGH}.")
        manifest.write_text(text.replace(f"fixed: {LOW}", f"fixed: {HIGH}"))
        self.wanted = HIGH
        return None

    def _best_low(self) -> tuple[float, float]:
        """Return the rate of the best window, and the control's beside it."""
        windows = ((phase.rate, allowed) for phase, allowed in self.low if allowed)
        return max(windows, key=lambda window: window[0] / window[1], default=(0.0, 1.0))

    def _report(self, status: MemberStatus, verdict: checker.Verdict) -> bool:
        """Print what was promised beside what was seen."""
        slow, allowed = self._best_low()
        fast = 0.0 if self.high is None else self.high.rate
        rows: list[tuple[str, str, bool | None]] = [
            ("flights handled", f"{verdict.handled:,} of {data.FLIGHTS:,}", verdict.handled == data.FLIGHTS),
            ("results unlike the one-pass computation", f"{verdict.different:,}", verdict.different == 0),
            ("duplicates", f"{verdict.duplicates:,}", verdict.duplicates == 0),
            ("order violations", f"{verdict.out_of_order:,}", verdict.out_of_order == 0),
            ("rebalances while the concurrency changed", str(status.rebalances), status.rebalances == 0),
            (f"rate at {LOW} (best of {len(self.low)} windows of {WINDOW_S:g} s)", f"{slow:,.0f}/s", slow > 0),
            (
                f"  of the {allowed:,.0f}/s that {LOW} bare calls did",
                f"{slow / allowed:.3f}",
                slow / allowed >= EFFICIENCY_MIN,
            ),
            (
                f"  of the {LOW / handlers.CALL_S:,.0f}/s if timers were exact",
                f"{slow * handlers.CALL_S / LOW:.3f}",
                None,
            ),
            (f"rate at {HIGH}", f"{fast:,.0f}/s", fast > 0),
            (f"  times the rate at {LOW}", f"{fast / max(slow, 1):.1f}", fast >= SPEEDUP_MIN * slow > 0),
        ]
        shown = Table(title="What was promised, and what was seen", title_justify="left", header_style="bold")
        shown.add_column("figure")
        shown.add_column("seen", justify="right")
        shown.add_column("as promised")
        for name, value, good in rows:
            shown.add_row(name, value, "" if good is None else "yes" if good else "NO")
        self.console.print(shown)
        return all(good is not False for _, _, good in rows)

    def _join(self, threads: list[Background]) -> None:
        for thread in threads:
            thread.join(10)


def _shown(members: list[MemberView]) -> str:
    return "; ".join(f"{m.name}: {m.status.handled if m.status else 'no status'}" for m in members)


def main() -> int:
    """Run the demo. Return the exit status: 0 when everything promised was seen."""
    console = Console(highlight=False)
    began = time.monotonic()
    good = Demo(console).main()
    verdict = "Everything promised was seen" if good else "NOT everything promised was seen"
    console.print(f"{verdict}, in {time.monotonic() - began:.0f} s.")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
