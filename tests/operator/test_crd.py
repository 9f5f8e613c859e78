"""The CRD is generated, small, and means what the settings model means."""

from pathlib import Path

import pytest
from pydantic import BaseModel, ValidationError

from parallel_consumer_operator.api import crd
from parallel_consumer_operator.api.status import ParallelConsumerStatus
from parallel_consumer_operator.api.structural import NotStructuralError, Schema, structural_schema
from parallel_consumer_runtime.settings import ParallelConsumerSpec, explain
from tests.support import bounds
from tests.support.corpus import INVALID, VALID, Case

AT_BOUNDS, BEYOND_BOUNDS = bounds.cases()
CRD_FILE = Path(__file__).parents[2] / "crds" / crd.FILE_NAME


def _properties(path: str) -> Schema:
    schema: Schema = crd.object_schema()
    for part in path.split("."):
        schema = schema["properties"][part]
    return schema


def test_the_file_in_the_tree_is_what_the_models_say() -> None:
    """`make crds` was run after the last change of a model."""
    assert CRD_FILE.read_text(encoding="utf-8") == crd.render()


def test_the_file_fits_what_kubectl_apply_can_carry() -> None:
    """`kubectl apply` stores the object in an annotation of at most 256 KiB."""
    assert len(crd.render()) < 200 * 1024


def test_the_columns_are_those_of_the_design_in_their_order() -> None:
    """`kubectl get pcon` shows group, desired, ready, concurrency, lag, status, age."""
    columns = crd.custom_resource_definition()["spec"]["versions"][0]["additionalPrinterColumns"]
    shown = [column["name"] for column in columns if "priority" not in column]
    assert shown == ["Group", "Desired", "Ready", "Concurrency", "Lag", "Status", "Age"]


def test_defaults_are_written_as_users_write_them() -> None:
    """A duration's default carries its unit."""
    assert _properties("spec.processing.commitInterval")["default"] == "100ms"
    assert _properties("spec.processing.buffer.bytes")["default"] == "64Mi"


def test_the_default_of_concurrency_is_never_stored() -> None:
    """A stored `fixed: 16` would clash with the min and max of a later apply."""
    assert "default" not in _properties("spec.processing.concurrency")
    assert "concurrency" not in _properties("spec.processing")["default"]


def test_every_field_is_described() -> None:
    """`kubectl explain` has a sentence for each field of the spec."""
    missing: list[str] = []

    def visit(path: str, schema: Schema) -> None:
        children: dict[str, Schema] = schema.get("properties", {})
        for name, child in children.items():
            if not child.get("description"):
                missing.append(f"{path}.{name}")
            visit(f"{path}.{name}", child)

    visit("spec", structural_schema(ParallelConsumerSpec))
    visit("status", structural_schema(ParallelConsumerStatus))
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


def test_every_duration_has_bounds() -> None:
    """A duration without bounds would let through what the API server cannot even read, such as a million years."""
    assert bounds.durations() - {field.path for field in bounds.bounded_fields()} == set()


def test_a_choice_of_types_is_refused_when_the_schema_is_generated() -> None:
    """A CRD cannot carry a union; the generator says where it stands."""

    class Union(BaseModel):
        either: int | str

    with pytest.raises(NotStructuralError, match="either"):
        structural_schema(Union)
