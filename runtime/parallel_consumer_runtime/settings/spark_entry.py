"""One of `spec.sparkJobs`: a Spark application that is run over window after window of what the consumer finished."""

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_validator

from parallel_consumer_runtime.settings.model import SettingsModel
from parallel_consumer_runtime.settings.offsets import TopicRole
from parallel_consumer_runtime.settings.quantities import Between, Duration
from parallel_consumer_runtime.settings.spark import SparkApplicationSpec
from parallel_consumer_runtime.settings.window import OnDataLoss

ENTRY_NAME_PATTERN = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
NAME_LENGTH_MAX = 40
HistoryLimit = Annotated[int, Field(ge=0, le=100)]


class Baseline(StrEnum):
    """Where the first window begins."""

    COMMITTED = "Committed"
    EARLIEST = "Earliest"


class TriggerSpec(SettingsModel):
    """When the next window is due: whichever comes first. The next one waits until the one before is done."""

    offsets: Annotated[int, Field(ge=1, le=10**12)] | None = None
    """So many offsets are ready."""
    interval: Annotated[Duration, Between("1s", "720h")] | None = None
    """So long after the last window was cut, if anything is ready then, else as soon as something is."""
    schedule: Annotated[str, StringConstraints(min_length=9, max_length=100)] | None = None
    """At these times, in the five fields of cron, in UTC."""
    on_drain: bool = False
    """Something is ready and the lag is 0."""
    manual: Annotated[str, StringConstraints(min_length=1, max_length=253)] | None = None
    """Any text. Another one than before asks for one window now."""

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not (self.offsets or self.interval or self.schedule or self.on_drain or self.manual):
            msg = "set at least one of offsets, interval, schedule, onDrain and manual"
            raise ValueError(msg)
        return self


class SparkJobEntry(SparkApplicationSpec):
    """A Spark application over windows of this consumer's input, results or dead letters: each offset in exactly one."""

    name: Annotated[str, StringConstraints(pattern=ENTRY_NAME_PATTERN, min_length=1, max_length=NAME_LENGTH_MAX)]
    """Its name. What is known of its windows belongs to it: another name begins anew."""
    image: Annotated[str, StringConstraints(min_length=1, max_length=1024)]
    """The image of driver and executors: Spark in /opt/spark, user 185, and the application."""
    source: TopicRole = TopicRole.INPUT
    """What windows are cut from: records that were handled, what they became, or those that could not be handled."""
    trigger: TriggerSpec
    """When the next window is due."""
    begin: Annotated[Baseline, Field(alias="from")] = Baseline.COMMITTED
    """Where the first window begins: with what is finished after the entry was accepted, or at the start of the log."""
    max_offsets_per_window: Annotated[int, Field(ge=1, le=10**12)] = 10_000_000
    """A window holds no more; the rest comes into the next one. 10,000,000: a backlog is worked off in pieces that can be
    tried again."""
    on_data_loss: OnDataLoss = OnDataLoss.FAIL
    """What to do about offsets that retention took before a window held them: Fail says so and waits, Skip writes them down
    and goes on."""
    suspend: bool = False
    """Cut no window, and try none again. A run under way goes on."""
    successful_jobs_history_limit: HistoryLimit = 3
    """SparkJobs that succeeded and are kept. The last one always is."""
    failed_jobs_history_limit: HistoryLimit = 1
    """SparkJobs that failed and are kept."""
