"""What to do next about one entry's windows: one step, after which the world is read again. No I/O, no clock.

Promises, whatever dies between two steps, and whoever else believes to be the operator meanwhile:

- Windows are numbered, and a run is named by its number, never by where it ends. Who finds a run that the ledger does not
  tell of yet takes its offsets for the truth.
- A run begins only when the ledger names its uid. The ledger is written only if nobody wrote it meanwhile, so two runs of
  different windows never hold the same offset, and of two that are called the same one runs.
- A window whose run failed is run again over the same offsets; the next one waits.
- A run is deleted only when the ledger knows what it says.
"""

from collections.abc import Sequence

from parallel_consumer_operator.windows.cutting import after, baseline, cut, offsets_of, uncut
from parallel_consumer_operator.windows.model import (
    Ask,
    Create,
    Decision,
    Delete,
    Entry,
    Keep,
    Ledger,
    OpenWindow,
    Run,
    Sample,
    Standing,
    Wait,
    replaced,
)
from parallel_consumer_operator.windows.triggers import ASKED_EVERY_S, MANUAL, SCHEDULE, Due, due
from parallel_consumer_runtime.settings.offsets import TopicRole
from parallel_consumer_runtime.settings.window import OnDataLoss, TopicWindow, WindowSpec

SETTLED = "Settled"
RUNNING = "Running"
RUN_FAILED = "RunFailed"
SUSPENDED = "Suspended"
SILENT = "PodsDoNotAnswer"


def decide(entry: Entry, ledger: Ledger | None, runs: Sequence[Run], sample: Sample) -> Decision:
    """Return the next step.

    Args:
        entry: what is wished.
        ledger: what is kept, None when nothing is.
        runs: all of the entry's, read live, after the ledger.
        sample: what pods report, and the broker's offsets when they were asked for.
    """
    if ledger is None:
        return _begin(entry, runs, sample)
    if (step := _tidy(entry, ledger, runs)) is not None:
        return step
    if ledger.open is not None:
        return _go_on(entry, ledger, ledger.open, runs, sample.at)
    if entry.suspended:
        return Wait(Standing(SUSPENDED, f"{ledger.sequence} windows are done; the next waits for suspend: false"))
    if sample.silent:
        return Wait(Standing(SILENT, sample.silent), ASKED_EVERY_S)
    return _look(entry, ledger, sample) if sample.broker is None else _cut(entry, ledger, sample)


def _tidy(entry: Entry, ledger: Ledger, runs: Sequence[Run]) -> Decision | None:
    """Take in what the ledger does not know yet, and delete what nobody needs."""
    if (unknown := _unknown(ledger, runs)) is not None:
        return Keep(_adopted(ledger, unknown))
    needless = [run for run in runs if _is_stray(ledger, run)] or _beyond_limits(entry, ledger, runs)
    return Delete(tuple(needless)) if needless else None


def _begin(entry: Entry, runs: Sequence[Run], sample: Sample) -> Decision:
    """Make the ledger: from the last run, when there is one, or from the baseline."""
    if runs:
        newest = max(runs, key=lambda run: run.order)
        return Keep(_adopted(Ledger(sequence=newest.window.sequence - 1, since=newest.created_at), newest))
    if sample.silent:
        return Wait(Standing(SILENT, sample.silent), ASKED_EVERY_S)
    if sample.broker is None:
        return Ask()
    found = baseline(entry, sample)
    return Keep(found) if isinstance(found, Ledger) else Wait(found, ASKED_EVERY_S)


def _unknown(ledger: Ledger, runs: Sequence[Run]) -> Run | None:
    """Return the newest run that is later than what the ledger tells of."""
    newest = max(runs, key=lambda run: run.order, default=None)
    return newest if newest is not None and newest.order > _order(ledger) else None


def _order(ledger: Ledger) -> tuple[int, float]:
    """Return what the ledger tells of: while a window is open its run, else everything up to it."""
    return ledger.sequence, float("inf") if ledger.open is None else ledger.open.window.retry


def _adopted(ledger: Ledger, run: Run) -> Ledger:
    window = run.window
    known = ledger if window.sequence == ledger.sequence else after(ledger, window)
    return replaced(
        known,
        sequence=window.sequence,
        open=None if run.succeeded else OpenWindow(window=window, uid=run.uid),
        since=ledger.since if window.retry else max(ledger.since, run.created_at),
        manual=ledger.manual if window.manual is None else window.manual,
    )


def _is_stray(ledger: Ledger, run: Run) -> bool:
    """Whether a run was made by somebody who knew less: it never began, and never will."""
    return not (run.started or run.finished) and (ledger.open is None or run.uid != ledger.open.uid)


def _go_on(entry: Entry, ledger: Ledger, opened: OpenWindow, runs: Sequence[Run], now: float) -> Decision:
    """Wait for the run of the open window; run it again when it failed or is gone."""
    window = opened.window
    run = next((run for run in runs if run.uid == opened.uid), None)
    again = Create(window.model_copy(update={"retry": window.retry + 1}))
    if run is None:
        return again
    if run.succeeded:
        return Keep(replaced(ledger, open=None))
    if not run.failed:
        return Wait(Standing(RUNNING, f"window {window.sequence} of {window.offsets} offsets is being worked on"))
    wait_s = min(entry.retry_after_s * 2.0 ** min(window.retry, 16), entry.retry_after_max_s)
    due_s = (now if run.finished_at is None else run.finished_at) + wait_s - now
    if due_s <= 0 and not entry.suspended:
        return again
    words = f"window {window.sequence} failed {window.retry + 1} times, and the next waits for it: {run.words}"
    return Wait(Standing(RUN_FAILED, words), max(due_s, 0.0) if not entry.suspended else None)


def _beyond_limits(entry: Entry, ledger: Ledger, runs: Sequence[Run]) -> list[Run]:
    """Return the runs beyond the limits of the history, without the last that began: the ledger can be made again from it."""
    last = max((run for run in runs if run.started or run.finished), key=lambda run: run.order, default=None)
    kept = {None if last is None else last.uid, None if ledger.open is None else ledger.open.uid}
    over = sorted((run for run in runs if run.finished and run.uid not in kept), key=lambda run: run.order)
    succeeded = [run for run in over if run.succeeded]
    failed = [run for run in over if run.failed]
    return [
        *succeeded[: max(0, len(succeeded) - max(0, entry.successful_kept - 1))],
        *failed[: max(0, len(failed) - entry.failed_kept)],
    ]


def _look(entry: Entry, ledger: Ledger, sample: Sample) -> Decision:
    """Ask the broker when a window may be due."""
    ready = uncut(entry, ledger, sample)
    told = due(entry.trigger, ledger, ready, sample.lag, sample.at)
    if told.cause is not None and ready:
        return Ask()
    if entry.source is TopicRole.INPUT:
        return _answered(entry, ledger, told, sample.at)
    if told.cause is None and not told.maybe:
        return Wait(_settled(ledger), told.next_s)
    # Results may lie there that no pod knows of: those of lives that are over, and other producers'.
    again_s = sample.asked_at + ASKED_EVERY_S - sample.at
    return Ask() if again_s <= 0 else Wait(_settled(ledger), min(again_s, told.next_s or again_s))


def _cut(entry: Entry, ledger: Ledger, sample: Sample) -> Decision:
    """Cut the next window, if it is due by what the broker says."""
    topics = cut(entry, ledger, sample)
    if isinstance(topics, Standing):
        return Wait(topics, ASKED_EVERY_S)
    offsets = offsets_of(topics)
    told = due(entry.trigger, ledger, offsets, sample.lag, sample.at)
    window = _window(entry, ledger, told.cause or "", topics)
    if told.cause is not None and offsets:
        return Create(window)
    if not offsets and (known := after(ledger, window)) != ledger:
        return Keep(known)  # new partitions, and where everything is lost
    return _answered(entry, ledger, told, sample.at)


def _answered(entry: Entry, ledger: Ledger, told: Due, now: float) -> Decision:
    """Nothing is there to be cut: what asked for a window at this very moment has its answer."""
    if told.cause in {MANUAL, SCHEDULE}:
        return Keep(replaced(ledger, since=now, manual=entry.trigger.manual))
    return Wait(_settled(ledger), told.next_s)


def _settled(ledger: Ledger) -> Standing:
    return Standing(SETTLED, f"{ledger.sequence} windows are done" if ledger.sequence else "no window was due yet")


def _window(entry: Entry, ledger: Ledger, cause: str, topics: list[TopicWindow]) -> WindowSpec:
    return WindowSpec(
        consumer=entry.consumer,
        consumer_uid=entry.consumer_uid,
        entry=entry.name,
        kafka=entry.kafka,
        sequence=ledger.sequence + 1,
        source=entry.source,
        topics=topics,
        on_data_loss=OnDataLoss.SKIP if entry.skip_lost else OnDataLoss.FAIL,
        cause=cause,
        manual=entry.trigger.manual,
    )
