"""Windows as manifests: an entry becomes what is decided about, its ledger a ConfigMap, a window a SparkJob."""

import hashlib
from datetime import datetime

from pydantic import ValidationError

from parallel_consumer_operator.api import Identity, SparkJob, SparkState
from parallel_consumer_operator.api.parallelconsumer import API_VERSION_OF_KIND
from parallel_consumer_operator.desired.naming import Labels, Manifest, child, labels_of
from parallel_consumer_operator.untyped import at
from parallel_consumer_operator.windows.model import Entry, Ledger, Run, Trigger
from parallel_consumer_runtime.settings import API_GROUP, AutoOffsetReset, ParallelConsumerSpec
from parallel_consumer_runtime.settings.spark import SPARK_JOB_KIND, SparkApplicationSpec
from parallel_consumer_runtime.settings.spark_entry import Baseline, SparkJobEntry
from parallel_consumer_runtime.settings.window import OnDataLoss, WindowKafka, WindowSpec

LEDGER_FILE = "ledger.json"
ENTRY = f"{API_GROUP}/entry"
"""Label of a SparkJob and of a ledger: the name in `spec.sparkJobs`."""
_NAME_LENGTH_MAX = 52
_DIGEST_LENGTH = 6
_CONNECTING = ("security.", "ssl.", "sasl.")
"""What of a consumer's librdkafka properties says how to connect; the rest is tuning, and nobody's but its own."""


def entry_of(owner: Identity, spec: ParallelConsumerSpec, entry: SparkJobEntry) -> Entry:
    """Return an entry as far as windows go."""
    trigger = entry.trigger
    config = {key: str(value) for key, value in spec.kafka.config.items() if key.startswith(_CONNECTING)}
    return Entry(
        name=entry.name,
        consumer=owner.name,
        consumer_uid=owner.uid,
        kafka=WindowKafka(bootstrap_servers=spec.kafka.bootstrap_servers, config=config),
        source=entry.source,
        trigger=Trigger(
            offsets=trigger.offsets,
            interval_s=trigger.interval,
            schedule=trigger.schedule,
            on_drain=trigger.on_drain,
            manual=trigger.manual,
        ),
        from_earliest=entry.begin is Baseline.EARLIEST,
        latest=spec.kafka.auto_offset_reset is AutoOffsetReset.LATEST,
        offsets_max=entry.max_offsets_per_window,
        skip_lost=entry.on_data_loss is OnDataLoss.SKIP,
        suspended=entry.suspend,
        successful_kept=entry.successful_jobs_history_limit,
        failed_kept=entry.failed_jobs_history_limit,
    )


def ledger_name(consumer: str, entry: str) -> str:
    """Return the name of the ConfigMap that keeps an entry's ledger."""
    return f"{consumer}-{entry}-windows"


def ledger_manifest(owner: Identity, entry: str, ledger: Ledger, version: str | None) -> Manifest:
    """Return the ledger's ConfigMap, as it replaces one of a version; None: there is none yet."""
    manifest = child(
        "v1",
        "ConfigMap",
        ledger_name(owner.name, entry),
        owner,
        {"data": {LEDGER_FILE: ledger.write()}},
        {**labels_of(owner.name), ENTRY: entry},
    )
    if version is not None:
        manifest["metadata"]["resourceVersion"] = version
    return manifest


def ledger_of(manifest: Manifest) -> Ledger:
    """Read a ledger's ConfigMap.

    Raises:
        ValueError: nothing may be cut by what it says.
    """
    return Ledger.read(str(at(manifest, "data", LEDGER_FILE) or ""))


def run_name(window: WindowSpec) -> str:
    """Return the name of a window's SparkJob: consumer, entry, number and retry, never what it holds."""
    digest = hashlib.sha256(f"{window.consumer_uid}/{window.entry}".encode()).hexdigest()[:_DIGEST_LENGTH]
    ending = f"-{digest}-{window.sequence}" + (f"-r{window.retry}" if window.retry else "")
    beginning = f"{window.consumer}-{window.entry}"[: _NAME_LENGTH_MAX - len(ending)].rstrip("-.")
    return beginning + ending


def runs_selector(owner: Identity, entry: str) -> str:
    """Return the selector of an entry's SparkJobs as list calls take it."""
    return f"{ENTRY}={entry},{Labels.NAME}={owner.name}"


def run_manifest(owner: Identity, entry: SparkJobEntry, window: WindowSpec) -> Manifest:
    """Return the SparkJob of a window, to be created."""
    application = entry.model_dump(
        mode="json", by_alias=True, exclude_unset=True, include=set(SparkApplicationSpec.model_fields) | {"image"}
    )
    spec = {**application, "window": window.model_dump(mode="json", by_alias=True, exclude_none=True)}
    labels = {**labels_of(owner.name), ENTRY: window.entry}
    return child(API_VERSION_OF_KIND, SPARK_JOB_KIND, run_name(window), owner, {"spec": spec}, labels)


def run_of(manifest: Manifest) -> Run | None:
    """Return a SparkJob as a window's run, None when it is none, or cannot be read."""
    try:
        job = SparkJob.parse(manifest)
    except ValidationError:
        return None
    if job.spec.window is None:
        return None
    state, finished = job.status.state, job.status.completion_time
    return Run(
        name=job.identity.name,
        uid=job.identity.uid,
        window=job.spec.window,
        created_at=_unix(str(at(manifest, "metadata", "creationTimestamp") or "1970-01-01T00:00:00Z")),
        started=job.status.attempts > 0,
        succeeded=state is SparkState.SUCCEEDED,
        failed=state is SparkState.FAILED,
        finished_at=None if finished is None else _unix(finished),
        words=job.status.message or "",
    )


def _unix(time: str) -> float:
    return datetime.fromisoformat(time).timestamp()
