"""docs/windows.md says what the models say: fields, defaults, reasons; its manifest is one."""

import re
from pathlib import Path

import yaml

from parallel_consumer_operator.api import Reason
from parallel_consumer_operator.api.structural import structural_schema
from parallel_consumer_operator.desired.refusals import refusals
from parallel_consumer_operator.windows import cutting, deciding
from parallel_consumer_runtime.settings import ParallelConsumerSpec
from parallel_consumer_runtime.settings.spark import SparkApplicationSpec
from parallel_consumer_runtime.settings.spark_entry import SparkJobEntry, TriggerSpec
from tests.support.corpus import manifest

PAGE = (Path(__file__).parents[2] / "docs" / "windows.md").read_text(encoding="utf-8")


def _aliases(model: type[SparkJobEntry] | type[TriggerSpec] | type[SparkApplicationSpec]) -> set[str]:
    return {field.alias or name for name, field in model.model_fields.items()}


def test_the_page_has_every_field_of_an_entry_and_no_other() -> None:
    """With the defaults that the API server writes."""
    rows = re.findall(
        r"(?m)^\| `([A-Za-z.]+)` \| ([^|]*)\| [^|]*\|$", PAGE.split("## Fields")[1].split("## What holds")[0]
    )
    own = _aliases(SparkJobEntry) - _aliases(SparkApplicationSpec) - {"trigger", "image"}
    assert {field for field, _ in rows} == own | {f"trigger.{name}" for name in _aliases(TriggerSpec)}
    schema = structural_schema(SparkJobEntry)
    for field, written in rows:
        found = schema
        for part in field.split("."):
            found = found["properties"][part]
        default = found.get("default", "")
        assert written.strip().strip("`") == (str(default).lower() if isinstance(default, bool) else str(default)), (
            field
        )


def test_the_page_has_every_reason_that_windows_stop_for() -> None:
    """Scripts match on these words, and a status takes no other."""
    told = set(re.findall(r"(?m)^\| `([A-Za-z]+)` \| [^|]+\| [^|]+\|$", PAGE.split("## When windows stop")[1]))
    cut = {cutting.WAITING, cutting.TOPIC_MADE_ANEW, cutting.COMMITTED_WENT_BACK, cutting.LOG_WENT_BACK}
    assert told == {*cut, cutting.LOG_BEHIND, cutting.OFFSETS_LOST, deciding.RUN_FAILED, deciding.SILENT, "Unreadable"}
    assert told <= {str(reason) for reason in Reason}


def test_the_page_s_manifest_is_one() -> None:
    """What a reader copies is accepted."""
    (block,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    whole = manifest()["spec"] | yaml.safe_load(block)["spec"]
    assert refusals(ParallelConsumerSpec.model_validate(whole)) == []


def test_a_schedule_that_is_none_is_refused_by_its_path() -> None:
    """Only the operator can know."""
    entry = {"name": "a", "image": "i", "mainApplicationFile": "local:///a.py", "trigger": {"schedule": "0 25 * * *"}}
    spec = ParallelConsumerSpec.model_validate(manifest()["spec"] | {"sparkJobs": [entry]})
    assert refusals(spec) == ["spec.sparkJobs[0].trigger.schedule: not a schedule: Bad hour"]
