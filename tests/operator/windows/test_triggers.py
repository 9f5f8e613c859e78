"""When windows are due."""

from dataclasses import replace

import pytest

from parallel_consumer_operator.windows.deciding import decide
from parallel_consumer_operator.windows.model import (
    Ask,
    Create,
    Entry,
    Keep,
    Ledger,
    Place,
    Sample,
    TopicEnds,
    TopicOffsets,
    Trigger,
    Wait,
)
from parallel_consumer_operator.windows.schedule import check_schedule
from parallel_consumer_operator.windows.triggers import Due, due
from parallel_consumer_runtime.settings.offsets import TopicRole
from parallel_consumer_runtime.settings.window import WindowKafka

NOON = 1_700_000_000.0 - 1_700_000_000.0 % 86_400 + 43_200
LEDGER = Ledger(sequence=1, topics={"t": TopicEnds(id="a", ends={0: 10})}, since=NOON)


def entry(trigger: Trigger, source: TopicRole = TopicRole.INPUT) -> Entry:
    """Return an entry with a trigger."""
    return Entry(
        name="archive",
        consumer="flights",
        consumer_uid="u",
        kafka=WindowKafka(bootstrap_servers="kafka:9092"),
        source=source,
        trigger=trigger,
    )


def sample(offset: int, *, after_s: float = 0.0, lag: int | None = None, asked: bool = False) -> Sample:
    """Return what pods report so long after the last window; results and commits go to the same offset."""
    broker = {"t": TopicOffsets("a", {0: (0, offset)})} if asked else None
    place = {Place("t", 0): offset}
    return Sample(at=NOON + after_s, committed=dict(place), produced=place, lag=lag, broker=broker)


def test_offsets_are_due_when_enough_are_there() -> None:
    """One less is not enough."""
    assert due(Trigger(offsets=5), LEDGER, 5, None, NOON).cause == "Offsets"
    assert due(Trigger(offsets=5), LEDGER, 4, None, NOON) == Due(None, None, maybe=True)


def test_an_interval_counts_from_the_last_window() -> None:
    """And says when to look again."""
    assert due(Trigger(interval_s=60), LEDGER, 0, None, NOON + 59) == Due(None, 1.0)
    assert due(Trigger(interval_s=60), LEDGER, 0, None, NOON + 60).cause == "Interval"


def test_a_schedule_comes_round_in_utc() -> None:
    """Five past the hour."""
    assert due(Trigger(schedule="5 * * * *"), LEDGER, 0, None, NOON + 299) == Due(None, 1.0)
    assert due(Trigger(schedule="5 * * * *"), LEDGER, 0, None, NOON + 300).cause == "Schedule"


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("every day", "five fields"),
        ("* * * * * *", "five fields"),
        ("0 25 * * *", "Bad hour"),
        ("0 0 30 2 *", "Bad day"),
    ],
)
def test_what_is_no_schedule_is_refused(expression: str, words: str) -> None:
    """With a reason; the thirtieth of February too."""
    with pytest.raises(ValueError, match=words):
        check_schedule(expression)
    assert check_schedule("0 3 * * 1") == "0 3 * * 1"


def test_a_drained_topic_is_due_when_something_is_ready() -> None:
    """An unknown lag is not 0."""
    trigger = Trigger(on_drain=True)
    assert due(trigger, LEDGER, 1, 0, NOON).cause == "OnDrain"
    assert due(trigger, LEDGER, 0, 0, NOON).cause is None
    assert due(trigger, LEDGER, 1, None, NOON).cause is None


def test_a_value_of_the_manual_trigger_is_answered_once() -> None:
    """A window, or the word that there is nothing."""
    wish = entry(Trigger(manual="1"))
    assert decide(wish, LEDGER, [], sample(12)) == Ask()
    found = decide(wish, LEDGER, [], sample(12, asked=True))
    assert isinstance(found, Create)
    assert (found.window.cause, found.window.manual) == ("Manual", "1")
    nothing = decide(wish, LEDGER, [], sample(10, after_s=5))
    assert isinstance(nothing, Keep)
    assert (nothing.ledger.manual, nothing.ledger.since) == ("1", NOON + 5)
    assert isinstance(decide(wish, nothing.ledger, [], sample(10, after_s=6)), Wait)


def test_a_schedule_without_anything_ready_waits_for_its_next_time() -> None:
    """Not for the first record after it."""
    wish = entry(Trigger(schedule="5 * * * *"))
    nothing = decide(wish, LEDGER, [], sample(10, after_s=300))
    assert isinstance(nothing, Keep)
    later = decide(wish, nothing.ledger, [], sample(11, after_s=400))
    assert isinstance(later, Wait)
    assert later.again_s == 3500.0


def test_an_interval_without_anything_ready_waits_for_the_first_offset() -> None:
    """It was due all the time."""
    wish = entry(Trigger(interval_s=60))
    assert isinstance(decide(wish, LEDGER, [], sample(10, after_s=100)), Wait)
    assert decide(wish, LEDGER, [], sample(11, after_s=100)) == Ask()


def test_the_broker_is_asked_of_results_that_no_pod_knows_of_now_and_then() -> None:
    """Pods know only what they produced in this life."""
    wish = entry(Trigger(offsets=5), TopicRole.RESULTS)
    now = replace(sample(10, after_s=100), asked_at=NOON + 95)
    found = decide(wish, LEDGER, [], now)
    assert isinstance(found, Wait)
    assert found.again_s == 5.0
    assert decide(wish, LEDGER, [], replace(now, asked_at=NOON + 90)) == Ask()


def test_a_suspended_entry_cuts_nothing() -> None:
    """What is due stays due."""
    wish = replace(entry(Trigger(offsets=1)), suspended=True)
    found = decide(wish, LEDGER, [], sample(20))
    assert isinstance(found, Wait)
    assert found.standing.reason == "Suspended"
