"""`spec.processing`: how records become handler calls. Everything live is marked so; the rest rolls the pods."""

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_validator

from parallel_consumer_runtime.settings.kafka import TopicName
from parallel_consumer_runtime.settings.model import HandlerPath, SettingsModel
from parallel_consumer_runtime.settings.outcomes import DeadLetterSpec, DeferralSpec, RetrySpec, RetryTopicSpec
from parallel_consumer_runtime.settings.pace import BatchSpec, BufferSpec, ConcurrencySpec, RateLimitSpec
from parallel_consumer_runtime.settings.quantities import Between, Duration

TRANSACTION_MAX_S = 10.0


class Ordering(StrEnum):
    """What may not run beside each other."""

    PARTITION = "Partition"
    KEY = "Key"
    UNORDERED = "Unordered"


class Worker(StrEnum):
    """Where handlers run: coroutines on one event loop, a pool of threads, or processes."""

    ASYNC = "Async"
    THREAD = "Thread"
    PROCESS = "Process"


class SubPartitioning(StrEnum):
    """How records of a partition are spread over sub-partitions."""

    HASH = "Hash"
    ROUND_ROBIN = "RoundRobin"
    FUNCTION = "Function"


class SubPartitionsSpec(SettingsModel):
    """Puts other than keys in order: the records of one sub-partition run one at a time, in offset order."""

    by: SubPartitioning = SubPartitioning.HASH
    """Hash: by the key's hash, so that a key stays in its sub-partition; records without a key go round. RoundRobin: each
    record in the next one. Function: whatever `function` returns."""
    count: Annotated[int, Field(ge=1, le=100_000)] = 128
    """Sub-partitions of each partition, for Hash and RoundRobin. 128, so that few keys share one at usual concurrency."""
    function: HandlerPath | None = None
    """As package.module:function; called with each record, quick and without waiting, it returns a string, bytes, a
    number, or None for a record that excludes nothing."""

    @model_validator(mode="after")
    def _function_when_needed(self) -> Self:
        if (self.function is not None) != (self.by == SubPartitioning.FUNCTION):
            msg = "function is for by: Function, and is needed there"
            raise ValueError(msg)
        return self


class CommitMode(StrEnum):
    """How offsets are committed."""

    ASYNC = "Async"
    SYNC = "Sync"
    TRANSACTIONAL = "Transactional"


class ProcessingSpec(SettingsModel):
    """How records become handler calls."""

    ordering: Ordering = Ordering.KEY
    """Partition: one record of a partition at a time. Key: one record of a key at a time, in offset order. Unordered:
    no limit but concurrency. Key, because it is what most handlers silently assume."""
    sub_partitions: SubPartitionsSpec | None = None
    """Order by sub-partition instead of by key. Needs ordering Key."""
    worker: Worker = Worker.ASYNC
    """Async runs `async def` handlers on one event loop: for handlers that wait for a network. Thread runs plain functions in a
    pool: for libraries that block. Process runs plain functions in processes of their own: for handlers that compute, or that
    may crash, which then costs one attempt of one record instead of the pod."""
    processes: Annotated[int, Field(ge=1, le=256)] | None = None
    """Processes of the Process worker. Unset, as many as the processors that the container may use: more compute no
    faster."""
    concurrency: ConcurrencySpec = ConcurrencySpec(fixed=16)
    """How many records one pod handles at once. Live."""
    batch: BatchSpec | None = None
    """Hand the handler lists of records. Unset, it gets one record at a time."""
    rate_limit: RateLimitSpec = RateLimitSpec()
    """Records per second that may start. Live."""
    retry: RetrySpec = RetrySpec()
    """What happens to a record whose handler raised. Live."""
    dead_letter: DeadLetterSpec | None = None
    """Where records go that used up their attempts."""
    retry_topic: RetryTopicSpec | None = None
    """A topic in which failing records wait, instead of holding their keys."""
    deferral: DeferralSpec | None = None
    """Lets handlers complete a record later. Not with batches or the Process worker."""
    scheduled_time_header: Annotated[str, StringConstraints(min_length=1, max_length=255)] | None = None
    """A header that holds milliseconds since 1970, as decimal text: the record does not start before that time. Its key waits
    behind it, other keys go on; what waits counts as buffered. Live."""
    ignored_keys: Annotated[list[Annotated[str, StringConstraints(max_length=1024)]], Field(max_length=1000)] = Field(
        default_factory=list[str]
    )
    """An escape hatch in an incident: records of these keys are complete without a call, and counted. A key that is no text is
    written as base64:… . Live."""
    slow_after: Annotated[Duration, Between("10ms", "24h")] = 30.0
    """A record that runs longer is reported, once: log, metric, status. Live."""
    stuck_after: Annotated[Duration, Between("1s", "24h")] | None = None
    """A record that runs longer makes the pod unhealthy, and its kubelet starts it anew: what was not committed is handled
    again. Never when unset, because only who wrote a handler knows how long it may take. Live."""
    buffer: BufferSpec = BufferSpec()
    """How much is read ahead. Live."""
    commit_interval: Annotated[Duration, Between("10ms", "60s")] = 0.1
    """Time between two commits, one in flight at most. Short, because what is done twice after a crash is what was
    done since the last commit. Live."""
    commit_records: Annotated[int, Field(ge=0, le=10_000_000)] = 0
    """Commit also when so many records were completed since the last commit; 0 is by time alone. Live."""
    commit_mode: CommitMode = CommitMode.ASYNC
    """Async: fetching goes on while a commit is on its way, one at most. Sync: it waits, which bounds what a crash repeats
    more tightly and costs throughput. Transactional: results, dead letters and offsets become visible together, once for each
    record, to whoever reads committed; results wait for the interval, and its end holds up producing for a moment. Async,
    because a short interval bounds repetition well enough for handlers that may run twice."""
    drain_timeout: Annotated[Duration, Between("0s", "1h")] = 30.0
    """On shutdown or revocation: how long records in flight may take to end before their partition is given up."""
    paused: bool = False
    """Take no new records; keep membership. Live."""

    @model_validator(mode="after")
    def _last_attempt_goes_somewhere(self) -> Self:
        if self.retry.max_attempts and self.dead_letter is None:
            msg = "retry.maxAttempts needs deadLetter.topic: a record that used up its attempts must go somewhere"
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _sub_partitions_replace_keys(self) -> Self:
        if self.sub_partitions is not None and self.ordering != Ordering.KEY:
            msg = "subPartitions needs ordering Key"
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _transactions_end_in_time(self) -> Self:
        if self.commit_mode == CommitMode.TRANSACTIONAL and self.commit_interval > TRANSACTION_MAX_S:
            msg = "commitInterval must be at most 10s with commitMode Transactional: the broker aborts what stays open"
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _batches_fit(self) -> Self:
        if self.batch is None:
            return self
        if self.batch.size > self.concurrency.bounds[1]:
            msg = "batch.size must not be greater than the concurrency: each record of a batch counts"
            raise ValueError(msg)
        if self.batch.same_key and self.ordering == Ordering.UNORDERED:
            msg = "batch.sameKey needs ordering Key or Partition"
            raise ValueError(msg)
        if self.deferral is not None:
            msg = "deferral is not for batches: a batch's outcomes are what the handler returns"
            raise ValueError(msg)
        return self


class ResultsSpec(SettingsModel):
    """Where records returned by the handler go."""

    topic: TopicName
    """A topic that exists. An input is complete only after its results were acknowledged."""
    provenance: bool = True
    """Each result says in headers `parallel-consumer-result-…` which topic, partition and offset it was made of, which of the
    record's results it is, when, and after how many attempts: whoever reads can tell one that was made twice from two. About
    250 bytes each, before compression."""
