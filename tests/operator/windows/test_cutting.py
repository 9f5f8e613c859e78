"""Where windows begin and end: each rule by itself."""

from dataclasses import replace

import pytest

from parallel_consumer_operator.windows.cutting import after, baseline, cut, offsets_of, uncut
from parallel_consumer_operator.windows.deciding import decide
from parallel_consumer_operator.windows.model import (
    Entry,
    Ledger,
    Place,
    Sample,
    Standing,
    TopicEnds,
    TopicOffsets,
    Trigger,
    Wait,
)
from parallel_consumer_runtime.settings.offsets import TopicRole
from parallel_consumer_runtime.settings.window import OnDataLoss, TopicWindow, WindowKafka, WindowSpec

KAFKA = WindowKafka(bootstrap_servers="kafka:9092")
INPUT = Entry(
    name="archive",
    consumer="flights",
    consumer_uid="u",
    kafka=KAFKA,
    source=TopicRole.INPUT,
    trigger=Trigger(offsets=1),
)
RESULTS = replace(INPUT, source=TopicRole.RESULTS)
LEDGER = Ledger(sequence=3, topics={"t": TopicEnds(id="a", ends={0: 10, 1: 20})}, since=0.0)


def seen(
    committed: dict[int, int | None] | None = None,
    partitions: dict[int, tuple[int, int]] | None = None,
    *,
    topic_id: str | None = "a",
    produced: dict[int, int] | None = None,
) -> Sample:
    """Return a sample of the topic `t`."""
    parts = {0: (0, 100), 1: (0, 100)} if partitions is None else partitions
    return Sample(
        at=50.0,
        committed={Place("t", p): offset for p, offset in (committed or {}).items()},
        produced={Place("t", p): offset for p, offset in (produced or {}).items()},
        broker={"t": TopicOffsets(topic_id, parts)},
    )


def spans(found: list[TopicWindow] | Standing) -> dict[int, tuple[int, int]]:
    """Return a window's offsets by partition."""
    assert not isinstance(found, Standing), found
    return {part.partition: (part.start, part.end) for topic in found for part in topic.partitions}


def standing(found: object) -> Standing:
    """Return why there is no window."""
    assert isinstance(found, Standing)
    return found


def window(found: list[TopicWindow] | Standing) -> WindowSpec:
    """Return the window after the ledger's last."""
    assert not isinstance(found, Standing), found
    return WindowSpec(
        consumer="flights",
        consumer_uid="u",
        entry="archive",
        kafka=KAFKA,
        sequence=4,
        source=TopicRole.INPUT,
        topics=found,
        on_data_loss=OnDataLoss.FAIL,
    )


def test_a_window_of_the_input_goes_from_the_last_end_to_the_commit() -> None:
    """Only what is committed, and a partition that nobody reports keeps its last end."""
    assert spans(cut(INPUT, LEDGER, seen({0: 15}))) == {0: (10, 15), 1: (20, 20)}


def test_a_partition_without_a_commit_gives_nothing() -> None:
    """None is no offset."""
    assert spans(cut(INPUT, LEDGER, seen({0: None, 1: 21}))) == {0: (10, 10), 1: (20, 21)}


def test_a_window_of_results_goes_to_the_end_of_the_log() -> None:
    """With what others produced there."""
    sample = seen(partitions={0: (0, 14), 1: (0, 25)}, produced={0: 14, 1: 22})
    assert spans(cut(RESULTS, LEDGER, sample)) == {0: (10, 14), 1: (20, 25)}


def test_a_log_that_ends_below_what_was_acknowledged_is_waited_for() -> None:
    """A broker that has just begun to lead a partition may tell a lower end; a window without the rest would break its promise."""
    sample = seen(partitions={0: (0, 12), 1: (0, 25)}, produced={0: 14})
    found = standing(cut(RESULTS, LEDGER, sample))
    assert found.reason == "LogBehind"
    assert "t[0] ends at 12 by its broker, and 14 was acknowledged" in found.words
    assert standing(baseline(RESULTS, sample)).reason == "LogBehind"


def test_a_commit_that_went_back_cuts_nothing() -> None:
    """Somebody reset the group's offsets: what is committed again was in a window already."""
    found = standing(cut(INPUT, LEDGER, seen({0: 9, 1: 30})))
    assert found.reason == "CommittedWentBack"
    assert "t[0]: 9 is committed, and windows hold everything up to 10" in found.words


def test_a_commit_that_retention_has_passed_is_no_step_back() -> None:
    """The baseline was the log's start, above a commit of long ago."""
    sample = seen({0: 4, 1: 20}, {0: (10, 100), 1: (0, 100)})
    assert spans(cut(INPUT, LEDGER, sample)) == {0: (10, 10), 1: (20, 20)}


def test_a_log_that_ends_below_the_last_window_cuts_nothing() -> None:
    """Records that a window held are gone from their log."""
    found = standing(cut(RESULTS, LEDGER, seen(partitions={0: (0, 9), 1: (0, 20)})))
    assert (found.reason, "t[0] ends at 9" in found.words) == ("LogWentBack", True)


@pytest.mark.parametrize(("topic_id", "words"), [("b", "was deleted and made again"), (None, "is gone")])
def test_a_topic_that_was_made_anew_cuts_nothing(topic_id: str | None, words: str) -> None:
    """Its offsets are other records now; the user decides."""
    found = standing(cut(INPUT, LEDGER, seen({0: 15}, topic_id=topic_id)))
    assert found.reason == "TopicMadeAnew"
    assert words in found.words


def test_a_partition_that_came_later_starts_at_its_log_s_start() -> None:
    """Whatever auto.offset.reset says."""
    sample = seen({0: 10, 1: 20, 2: 7}, {0: (0, 50), 1: (0, 50), 2: (0, 50)})
    assert spans(cut(INPUT, LEDGER, sample))[2] == (0, 7)


def test_lost_offsets_fail_or_are_told() -> None:
    """Nothing is skipped unless the user lets it go, and then it is written down."""
    sample = seen({0: 40, 1: 20}, {0: (30, 100), 1: (0, 100)})
    found = standing(cut(INPUT, LEDGER, sample))
    assert found.reason == "OffsetsLost"
    assert "t[0] begins at 30 by now: offsets from 10 on are lost" in found.words
    skipping = cut(replace(INPUT, skip_lost=True), LEDGER, sample)
    assert spans(skipping)[0] == (30, 40)
    kept = after(LEDGER, window(skipping))
    assert (kept.skipped, [(skip.start, skip.end, skip.sequence) for skip in kept.skips]) == (20, [(10, 30, 4)])


def test_everything_lost_leaves_an_empty_span() -> None:
    """Retention passed what was committed."""
    sample = seen({0: 25, 1: 20}, {0: (30, 100), 1: (0, 100)})
    assert spans(cut(replace(INPUT, skip_lost=True), LEDGER, sample))[0] == (25, 25)


def test_a_window_is_bounded_and_takes_of_every_partition() -> None:
    """By the same share; no offset of a partition is left out in the middle."""
    found = cut(replace(INPUT, offsets_max=30), LEDGER, seen({0: 50, 1: 80}))
    assert spans(found) == {0: (10, 22), 1: (20, 38)}
    assert not isinstance(found, Standing)
    assert offsets_of(found) == 30


def test_a_bound_below_the_number_of_partitions_still_moves() -> None:
    """One offset at a time is slow, and not nothing."""
    assert spans(cut(replace(INPUT, offsets_max=1), LEDGER, seen({0: 50, 1: 80}))) == {0: (10, 11), 1: (20, 20)}


def test_the_next_window_starts_where_this_one_ends() -> None:
    """With the partitions that came later."""
    sample = seen({0: 15, 1: 20, 2: 5}, {0: (0, 50), 1: (0, 50), 2: (0, 50)})
    kept = after(LEDGER, window(cut(INPUT, LEDGER, sample)))
    assert kept.topics["t"].ends == {0: 15, 1: 20, 2: 5}
    assert kept.skipped == 0


def test_a_topic_of_a_pattern_that_is_not_seen_now_stays_known() -> None:
    """The window tells where it stands, so that the ledger can be made again from it."""
    ledger = Ledger(topics={**LEDGER.topics, "old": TopicEnds(id="o", ends={0: 5})}, since=0.0)
    found = cut(INPUT, ledger, seen({0: 15, 1: 20}))
    assert not isinstance(found, Standing)
    assert [(topic.name, topic.id, topic.partitions[0].start) for topic in found] == [("old", "o", 5), ("t", "a", 10)]


def test_the_baseline_is_what_is_committed() -> None:
    """Windows begin with what is finished from now on."""
    found = baseline(INPUT, seen({0: 12, 1: 0}))
    assert isinstance(found, Ledger)
    assert found.topics == {"t": TopicEnds(id="a", ends={0: 12, 1: 0})}


def test_the_earliest_baseline_is_the_log_s_start() -> None:
    """Windows begin with what the topic still holds."""
    found = baseline(replace(INPUT, from_earliest=True), seen({}, {0: (3, 9)}))
    assert isinstance(found, Ledger)
    assert found.topics["t"].ends == {0: 3}


def test_the_baseline_waits_for_every_partition() -> None:
    """One that is reported later would count as one that came later, and start too low."""
    assert "no pod reports t[1] yet" in standing(baseline(INPUT, seen({0: 12}))).words


def test_the_baseline_waits_for_the_commit_of_a_consumer_that_starts_at_the_end() -> None:
    """Until then nobody knows where that is."""
    found = standing(baseline(replace(INPUT, latest=True), seen({0: None, 1: 3})))
    assert "nothing is committed for t[0] yet" in found.words


def test_a_consumer_that_starts_at_the_beginning_has_a_baseline_without_a_commit() -> None:
    """A partition that is empty has no commit for as long as it is."""
    found = baseline(INPUT, seen({0: None, 1: 3}))
    assert isinstance(found, Ledger)
    assert found.topics["t"].ends == {0: 0, 1: 3}


def test_the_baseline_of_results_is_the_end_of_their_log() -> None:
    """Windows begin with what is produced from now on."""
    found = baseline(RESULTS, seen(partitions={0: (0, 9)}, produced={0: 9}))
    assert isinstance(found, Ledger)
    assert found.topics["t"].ends == {0: 9}


def test_the_baseline_waits_for_the_topic() -> None:
    """It may be made later than the entry."""
    assert "the topic t does not exist yet" in standing(baseline(INPUT, seen({}, {}, topic_id=None))).words
    assert "none of the topics" in standing(baseline(INPUT, replace(seen(), broker={}))).words


def test_what_is_ready_is_counted_from_the_reports() -> None:
    """Without a question to the broker."""
    assert uncut(INPUT, LEDGER, seen({0: 15, 1: 20, 2: 4})) == 9
    assert uncut(RESULTS, LEDGER, seen({0: 15}, produced={1: 26})) == 6


def test_a_ledger_that_cannot_be_read_is_no_ledger() -> None:
    """What a newer operator wrote must not be cut short by an older one."""
    assert Ledger.read(LEDGER.write()) == LEDGER
    with pytest.raises(ValueError, match="the ledger cannot be read"):
        Ledger.read('{"since": 1, "newer": true}')


def test_silent_pods_are_waited_for() -> None:
    """Who reports nothing has not finished nothing."""
    sample = Sample(at=1.0, committed={}, silent="no pod answers")
    for ledger in (None, LEDGER):
        found = decide(INPUT, ledger, [], sample)
        assert isinstance(found, Wait)
        assert found.standing == Standing("PodsDoNotAnswer", "no pod answers")
