"""The CRDs are generated, small, and mean what the settings models mean."""

from pathlib import Path

import pytest
from pydantic import BaseModel, ValidationError

from parallel_consumer_operator.api import crd
from parallel_consumer_operator.api.crd import DEFINITIONS, PARALLEL_CONSUMER, SPARK_JOB, Definition
from parallel_consumer_operator.api.sparkjob_rules import MUTABLE
from parallel_consumer_operator.api.structural import NotStructuralError, Schema, structural_schema
from parallel_consumer_runtime.settings import ParallelConsumerSpec, explain
from parallel_consumer_runtime.settings.spark import SparkJobSpec
from tests.support import bounds
from tests.support.corpus import INVALID, VALID, Case
from tests.support.spark_corpus import SPARK_INVALID, SPARK_VALID, SparkCase

AT_BOUNDS, BEYOND_BOUNDS = bounds.cases()
CRDS = Path(__file__).parents[2] / "crds"
each_kind = pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda definition: definition.kind)


def _properties(path: str) -> Schema:
    schema: Schema = crd.object_schema(PARALLEL_CONSUMER)
    for part in path.split("."):
        schema = schema["properties"][part]
    return schema


@each_kind
def test_the_file_in_the_tree_is_what_the_models_say(definition: Definition) -> None:
    """`make crds` was run after the last change of a model."""
    assert (CRDS / definition.file_name).read_text(encoding="utf-8") == crd.render(definition)


def test_every_file_in_the_tree_is_generated() -> None:
    """None is left over of a kind that is gone."""
    assert {path.name for path in CRDS.iterdir()} == {definition.file_name for definition in DEFINITIONS}


def test_the_generator_writes_every_file(tmp_path: Path) -> None:
    """`make crds` is this."""
    assert crd.main([str(tmp_path)]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in CRDS.iterdir()}


@each_kind
def test_the_file_fits_what_kubectl_apply_can_carry(definition: Definition) -> None:
    """`kubectl apply` stores the object in an annotation of at most 256 KiB."""
    assert len(crd.render(definition)) < 200 * 1024


@pytest.mark.parametrize(
    ("definition", "columns"),
    [
        (PARALLEL_CONSUMER, ["Group", "Desired", "Ready", "Concurrency", "Lag", "Status", "Age"]),
        (SPARK_JOB, ["Status", "Attempts", "Executors", "Started", "Finished", "Age"]),
    ],
    ids=["pcon", "pcsj"],
)
def test_the_columns_are_those_of_the_design_in_their_order(definition: Definition, columns: list[str]) -> None:
    """What `kubectl get` shows without being asked for more."""
    version = crd.custom_resource_definition(definition)["spec"]["versions"][0]
    assert [column["name"] for column in version["additionalPrinterColumns"] if "priority" not in column] == columns


def test_the_short_names_are_nobody_elses() -> None:
    """`pc` is PriorityClass's."""
    names = [crd.custom_resource_definition(definition)["spec"]["names"]["shortNames"] for definition in DEFINITIONS]
    assert names == [["pcon"], ["pcsj"]]


def test_defaults_are_written_as_users_write_them() -> None:
    """A duration's default carries its unit."""
    assert _properties("spec.processing.commitInterval")["default"] == "100ms"
    assert _properties("spec.processing.buffer.bytes")["default"] == "64Mi"


def test_the_default_of_concurrency_is_never_stored() -> None:
    """A stored `fixed: 16` would clash with the min and max of a later apply."""
    assert "default" not in _properties("spec.processing.concurrency")
    assert "concurrency" not in _properties("spec.processing")["default"]


def test_every_field_of_a_spark_job_but_suspend_is_immutable() -> None:
    """Each has its rule, which also sees it come and go."""
    spec = crd.object_schema(SPARK_JOB)["properties"]["spec"]
    ruled = {rule["fieldPath"].removeprefix(".") for rule in spec["x-kubernetes-validations"]}
    assert ruled == set(spec["properties"]) - MUTABLE
    assert {"suspend"} == MUTABLE


@each_kind
def test_every_field_is_described(definition: Definition) -> None:
    """`kubectl explain` has a sentence for each field."""
    missing: list[str] = []

    def visit(path: str, schema: Schema) -> None:
        children: dict[str, Schema] = schema.get("properties", {})
        for name, child in children.items():
            if not child.get("description"):
                missing.append(f"{path}.{name}")
            visit(f"{path}.{name}", child)

    visit("spec", structural_schema(definition.spec))
    visit("status", structural_schema(definition.status))
    assert missing == []


@pytest.mark.parametrize("case", VALID + AT_BOUNDS, ids=lambda case: case.title)
def test_the_model_accepts_the_valid_corpus(case: Case) -> None:
    """What the API server is to accept, the runtime can read."""
    ParallelConsumerSpec.read(case.manifest["spec"])


@pytest.mark.parametrize("case", INVALID + BEYOND_BOUNDS, ids=lambda case: case.title)
def test_the_model_refuses_the_invalid_corpus_by_path(case: Case) -> None:
    """What the API server is to refuse, a local run refuses too, naming the same path."""
    with pytest.raises(ValidationError) as refusal:
        ParallelConsumerSpec.read(case.manifest["spec"])
    assert case.path
    assert any(
        line.startswith(f"{case.path}:") and line.endswith(case.says or "") for line in explain(refusal.value, "spec")
    )


@pytest.mark.parametrize("case", SPARK_VALID, ids=lambda case: case.title)
def test_the_model_accepts_valid_spark_jobs(case: SparkCase) -> None:
    """What the API server is to accept, the operator can read."""
    SparkJobSpec.model_validate(case.manifest["spec"])


@pytest.mark.parametrize("case", SPARK_INVALID, ids=lambda case: case.title)
def test_the_model_refuses_invalid_spark_jobs_by_path(case: SparkCase) -> None:
    """What the API server is to refuse, the operator would refuse too, naming the same path and what to do."""
    with pytest.raises(ValidationError) as refusal:
        SparkJobSpec.model_validate(case.manifest["spec"])
    assert case.path
    assert any(
        line.startswith(f"{case.path}:") and (case.says or "") in line for line in explain(refusal.value, "spec")
    )


@each_kind
def test_every_duration_has_bounds(definition: Definition) -> None:
    """A duration without bounds would let through what the API server cannot even read, such as a million years."""
    bounded = {field.path for field in bounds.bounded_fields(definition.spec)}
    assert bounds.durations(definition.spec) - bounded == set()


def test_a_choice_of_types_is_refused_when_the_schema_is_generated() -> None:
    """A CRD cannot carry a union; the generator says where it stands."""

    class Union(BaseModel):
        either: int | str

    with pytest.raises(NotStructuralError, match="either"):
        structural_schema(Union)
