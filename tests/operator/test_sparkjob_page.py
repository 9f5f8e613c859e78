"""docs/sparkjob.md says what the models say: fields, defaults, states, reasons; its manifest is one."""

import re
from collections.abc import Iterator
from pathlib import Path

import yaml
from pydantic import BaseModel

from parallel_consumer_operator.api import SparkConditionType, SparkJob, SparkReason, SparkState
from parallel_consumer_operator.api.structural import structural_schema
from parallel_consumer_operator.desired.spark import spark_refusals
from parallel_consumer_operator.settings import OperatorSettings
from parallel_consumer_runtime.settings.spark import SparkJobSpec

PAGE = (Path(__file__).parents[2] / "docs" / "sparkjob.md").read_text(encoding="utf-8")


def _fields(model: type[BaseModel], path: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        place = f"{path}{field.alias or name}"
        nested = field.annotation
        if isinstance(nested, type) and issubclass(nested, BaseModel):
            yield from _fields(nested, f"{place}.")
        else:
            yield place


def _rows() -> dict[str, str]:
    """Return each field of the page with its default as written there."""
    rows = re.findall(r"(?m)^\| `([A-Za-z.]+)` \| ([^|]*)\| [^|]*\|$", PAGE.split("## Fields")[1].split("## States")[0])
    return {field: default.strip() for field, default in rows}


def test_the_page_has_every_field_and_no_other() -> None:
    """A field that nobody can read of is not there."""
    assert list(_rows()) == sorted(_fields(SparkJobSpec), key=list(_rows()).index)


def test_the_page_has_every_default() -> None:
    """Those that the API server writes into the object."""
    schema = structural_schema(SparkJobSpec)
    for field, written in _rows().items():
        found = schema
        for part in field.split("."):
            found = found["properties"][part]
        default = found.get("default", "")
        assert written.strip("`") == (str(default).lower() if isinstance(default, bool) else str(default)), field


def test_the_page_has_every_state_condition_and_reason() -> None:
    """Scripts match on these words."""
    for word in (*SparkState, *SparkConditionType, *SparkReason):
        assert f"`{word}`" in PAGE, word


def test_the_page_s_manifest_is_one() -> None:
    """What a reader copies is accepted."""
    (block,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    manifest = yaml.safe_load(block)
    manifest["metadata"] |= {"namespace": "default", "uid": "u-1"}
    assert spark_refusals(SparkJob.parse(manifest).spec) == []


def test_the_driver_s_account_is_the_one_that_the_manifests_make() -> None:
    """The operator's default, the page and the manifest name the same."""
    account = OperatorSettings().spark_service_account
    path = Path(__file__).parents[2] / "operator" / "manifests" / "spark-driver.yaml"
    parts = {part["kind"]: part for part in yaml.safe_load_all(path.read_text(encoding="utf-8"))}
    assert parts["ServiceAccount"]["metadata"]["name"] == account
    assert [subject["name"] for subject in parts["RoleBinding"]["subjects"]] == [account]
    assert parts["RoleBinding"]["roleRef"]["name"] == parts["ClusterRole"]["metadata"]["name"]
    assert f"`{account}`" in PAGE
