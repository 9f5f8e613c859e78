"""Where a window begins and ends, and where the first one begins.

Promises: each offset from the baseline on is in exactly one window; a window of the input holds only what is committed; a
window of results holds every result of an input that was committed when the pods were read, because their commits come
after the acknowledgements of their results, and the ends of the log are read after the pods.
"""

from collections.abc import Iterator
from typing import NamedTuple

from parallel_consumer_operator.windows.model import (
    SKIPPED_SHOWN_MAX,
    Entry,
    Ledger,
    Place,
    Sample,
    SkippedRange,
    Standing,
    TopicEnds,
    TopicOffsets,
    replaced,
)
from parallel_consumer_runtime.settings.offsets import TopicRole
from parallel_consumer_runtime.settings.window import PartitionWindow, TopicWindow, WindowSpec

WAITING = "WaitingForBaseline"
TOPIC_MADE_ANEW = "TopicMadeAnew"
COMMITTED_WENT_BACK = "CommittedWentBack"
LOG_WENT_BACK = "LogWentBack"
LOG_BEHIND = "LogBehind"
OFFSETS_LOST = "OffsetsLost"
_BEGIN_ANEW = "another name of the entry begins anew"


class _Span(NamedTuple):
    place: Place
    start: int
    end: int


def baseline(entry: Entry, sample: Sample) -> Ledger | Standing:
    """Return the ledger before the first window, or what is waited for."""
    topics: dict[str, TopicEnds] = {}
    for name, topic in _known(sample).items():
        if topic.id is None:
            return Standing(WAITING, f"the topic {name} does not exist yet")
        ends: dict[int, int] = {}
        for partition, log in topic.partitions.items():
            first = log[0] if entry.from_earliest else _beginning(entry, sample, Place(name, partition), log)
            if isinstance(first, Standing):
                return first
            ends[partition] = first
        topics[name] = TopicEnds(id=topic.id, ends=ends)
    if not topics:
        return Standing(WAITING, "none of the topics exists yet")
    return Ledger(topics=topics, since=sample.at)


def _beginning(entry: Entry, sample: Sample, place: Place, log: tuple[int, int]) -> int | Standing:
    """Return where a partition stands now."""
    first, last = log
    if entry.source is not TopicRole.INPUT:
        produced = sample.produced.get(place, 0)
        return last if produced <= last else _behind(place, last, produced)
    if place not in sample.committed:
        return Standing(WAITING, f"no pod reports {place.topic}[{place.partition}] yet")
    committed = sample.committed[place]
    if committed is None and entry.latest:
        return Standing(WAITING, f"nothing is committed for {place.topic}[{place.partition}] yet")
    return first if committed is None else committed


def uncut(entry: Entry, ledger: Ledger, sample: Sample) -> int:
    """Return how many offsets are ready by what the pods report; of results there may be more than they know."""
    ready = sample.committed if entry.source is TopicRole.INPUT else sample.produced
    return sum(max(0, end - (ledger.start(place) or 0)) for place, end in ready.items() if end is not None)


def cut(entry: Entry, ledger: Ledger, sample: Sample) -> list[TopicWindow] | Standing:
    """Return the offsets of the next window, which may be none, or why none may be cut."""
    spans: list[_Span] = []
    for name, topic in _known(sample).items():
        known = ledger.topics.get(name)
        if known is not None and topic.id != known.id:
            words = "is gone" if topic.id is None else "was deleted and made again"
            return Standing(TOPIC_MADE_ANEW, f"the topic {name} {words} since the last window; {_BEGIN_ANEW}")
        for partition, log in topic.partitions.items():
            span = _span(entry, ledger, sample, Place(name, partition), log)
            if isinstance(span, Standing):
                return span
            spans.append(span)
    spans += _unseen(ledger, {span.place for span in spans})
    return _topics(ledger, sample, _bounded(sorted(spans), entry.offsets_max))


def offsets_of(topics: list[TopicWindow]) -> int:
    """Return how many offsets a window holds."""
    return sum(part.end - part.start for topic in topics for part in topic.partitions)


def after(ledger: Ledger, window: WindowSpec) -> Ledger:
    """Return the ledger with what a window says: where the next one starts, and what it left out because it was gone."""
    topics = dict(ledger.topics)
    skips: list[SkippedRange] = []
    for topic in window.topics:
        before = topics.get(topic.name)
        ends = {} if before is None or before.id != topic.id else dict(before.ends)
        for part in topic.partitions:
            known = ends.get(part.partition, part.start)
            if part.start > known and window.sequence == ledger.sequence + 1:  # else windows lie between
                skips.append(_skipped(topic.name, part.partition, known, part.start, window.sequence))
            ends[part.partition] = part.end
        topics[topic.name] = TopicEnds(id=topic.id, ends=ends)
    return replaced(
        ledger,
        topics=topics,
        skipped=ledger.skipped + sum(skip.end - skip.start for skip in skips),
        skips=[*ledger.skips, *skips][-SKIPPED_SHOWN_MAX:],
    )


def _span(entry: Entry, ledger: Ledger, sample: Sample, place: Place, log: tuple[int, int]) -> _Span | Standing:
    """Return what of a partition is ready."""
    first, last = log
    known = ledger.start(place)
    # A partition that came later starts where its log does, whatever auto.offset.reset says.
    start = first if known is None else known
    if entry.source is TopicRole.INPUT:
        end = _committed_end(place, start, log, sample.committed.get(place))
    else:
        end = _result_end(place, start, last, sample.produced.get(place, 0))
    if isinstance(end, Standing):
        return end
    if first <= start or end == start:
        return _Span(place, start, end)
    if entry.skip_lost:
        return _Span(place, min(first, end), end)
    words = f"{place.topic}[{place.partition}] begins at {first} by now: offsets from {start} on are lost"
    return Standing(OFFSETS_LOST, f"{words}; onDataLoss: Skip goes on without them")


def _committed_end(place: Place, start: int, log: tuple[int, int], committed: int | None) -> int | Standing:
    first, last = log
    # Nobody reports it, nothing of it is done, or retention has passed the commit: its consumer goes on at the log's start.
    if committed is None or committed < min(start, first):
        return start
    if committed < start:
        words = f"{place.topic}[{place.partition}]: {committed} is committed, and windows hold everything up to {start}"
        return Standing(COMMITTED_WENT_BACK, f"{words}; {_BEGIN_ANEW}")
    return max(start, min(committed, last))


def _result_end(place: Place, start: int, end: int, produced: int) -> int | Standing:
    if produced > end:
        return _behind(place, end, produced)
    if end >= start:
        return end
    words = f"{place.topic}[{place.partition}] ends at {end}, and windows hold everything up to {start}"
    return Standing(LOG_WENT_BACK, f"{words}; {_BEGIN_ANEW}")


def _behind(place: Place, end: int, produced: int) -> Standing:
    """The high watermark of a broker that leads the partition for a moment only, or what a pod tells of a topic that is gone."""
    words = f"{place.topic}[{place.partition}] ends at {end} by its broker, and {produced} was acknowledged"
    return Standing(LOG_BEHIND, f"{words}; if the topic was made anew, the pods know of it with their next result")


def _bounded(spans: list[_Span], offsets_max: int) -> list[_Span]:
    """Return the spans cut down to so many offsets, each by the same share."""
    total = sum(span.end - span.start for span in spans)
    if total <= offsets_max:
        return spans
    shares = [(span.end - span.start) * offsets_max // total for span in spans]
    left = offsets_max - sum(shares)
    for index, span in enumerate(spans):
        if left and shares[index] < span.end - span.start:
            shares[index] += 1
            left -= 1
    return [_Span(span.place, span.start, span.start + share) for span, share in zip(spans, shares, strict=True)]


def _topics(ledger: Ledger, sample: Sample, spans: list[_Span]) -> list[TopicWindow]:
    found = _known(sample)
    parts: dict[str, list[PartitionWindow]] = {}
    for span in spans:
        part = PartitionWindow(partition=span.place.partition, start=span.start, end=span.end)
        parts.setdefault(span.place.topic, []).append(part)
    windows: list[TopicWindow] = []
    for name, partitions in sorted(parts.items()):
        topic_id = found[name].id if name in found else ledger.topics[name].id
        assert topic_id is not None  # one without partitions has no span
        windows.append(
            TopicWindow(name=name, id=topic_id, partitions=sorted(partitions, key=lambda part: part.partition))
        )
    return windows


def _unseen(ledger: Ledger, seen: set[Place]) -> Iterator[_Span]:
    """What is known and was not read now: the window tells where it stands, so that the ledger can be made again from it."""
    for name, topic in ledger.topics.items():
        for partition, end in topic.ends.items():
            if (place := Place(name, partition)) not in seen:
                yield _Span(place, end, end)


def _skipped(topic: str, partition: int, start: int, end: int, sequence: int) -> SkippedRange:
    return SkippedRange(topic=topic, partition=partition, start=start, end=end, sequence=sequence)


def _known(sample: Sample) -> dict[str, TopicOffsets]:
    assert sample.broker is not None
    return dict(sample.broker)
