"""How far what was produced reaches: nothing counts before its transaction is committed, and nothing of an aborted one."""

from parallel_consumer_runtime.core import PartitionKey
from parallel_consumer_runtime.kafka.produced import ProducedEnds

RESULTS, DEAD = "results", "dead"


def note(ends: ProducedEnds, topic: str, partition: int, offset: int) -> None:
    """A record was acknowledged."""
    place = ends.of(topic)
    assert place is not None
    place[partition] = offset


def test_an_acknowledged_record_counts_at_once_outside_of_transactions() -> None:
    """The end is the offset after the last; in order of topics and partitions; a topic that began anew counts from there."""
    ends = ProducedEnds([RESULTS, DEAD])
    assert ends.ends() == []
    for place in ((RESULTS, 2, 7), (RESULTS, 0, 3), (DEAD, 0, 0), (RESULTS, 2, 9), (RESULTS, 0, 1)):
        note(ends, *place)
    assert ends.ends() == [
        (PartitionKey(DEAD, 0), 1),
        (PartitionKey(RESULTS, 0), 2),
        (PartitionKey(RESULTS, 2), 10),
    ]


def test_other_topics_are_not_remembered() -> None:
    """The retry topic's ends are nobody's business."""
    assert ProducedEnds([RESULTS]).of("retries") is None


def test_only_what_a_committed_transaction_holds_counts() -> None:
    """Open, it does not; aborted, never; partitions that the next one does not touch keep their ends."""
    ends = ProducedEnds([RESULTS], atomic=True)
    note(ends, RESULTS, 0, 4)
    assert ends.ends() == []
    ends.commit()
    assert ends.ends() == [(PartitionKey(RESULTS, 0), 5)]
    note(ends, RESULTS, 0, 8)
    note(ends, RESULTS, 1, 0)
    ends.abort()
    ends.commit()
    assert ends.ends() == [(PartitionKey(RESULTS, 0), 5)]
    note(ends, RESULTS, 1, 2)
    ends.commit()
    assert ends.ends() == [(PartitionKey(RESULTS, 0), 5), (PartitionKey(RESULTS, 1), 3)]
