"""docs/memory.md is true: its metrics are told, its settings are in the schema, its tests exist, and no bound is missing."""

import ast
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from parallel_consumer_runtime.kafka.config import consumer_config
from parallel_consumer_runtime.settings import ParallelConsumerSpec, render_static
from tests.support.corpus import manifest
from tests.support.exposition import exposition

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "memory.md").read_text()
QUOTED = re.findall(r"`([^`\n]+)`", PAGE)
METRICS = sorted({name for name in QUOTED if re.match(r"(parallel_consumer|process)_", name)})
SETTINGS = sorted({path for path in QUOTED if path.startswith("spec.")})
TESTS = sorted({test for test in QUOTED if "::" in test})
PROPERTIES = sorted({name for name in QUOTED if re.fullmatch(r"[a-z]+(\.[a-z]+)+", name) and name not in SETTINGS})
MOVED, FOLLOWING = re.findall(r"\n\|[-|]+\|\n((?:\|.*\n)+)", PAGE)


@cache
def told() -> set[str]:
    """Return the names that a member tells."""
    return {name for name, _ in exposition()}


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_of_the_page_is_told(name: str) -> None:
    """A real member's /metrics has it."""
    assert name in told()


def test_every_bound_that_is_told_is_on_the_page() -> None:
    """A gauge that ends in `_max` has its row, and each row's gauges have theirs."""
    bounded = {name.removesuffix("_max") for name in told() if re.fullmatch(r"parallel_consumer_\w+_max", name)}
    cells = [row.split("|")[3] for row in MOVED.strip().splitlines()]
    assert {name for cell in cells for name in re.findall(r"`(\w+)`", cell)} == bounded
    assert bounded <= told(), "a bound without its present value"


@pytest.mark.parametrize("path", SETTINGS)
def test_every_setting_of_the_page_is_in_the_schema(path: str) -> None:
    """The kind's schema has the field, and says what it means."""
    (crd,) = yaml.safe_load_all((ROOT / "crds" / "parallelconsumers.yaml").read_text())
    schema: dict[str, Any] = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for part in path.split("."):
        schema = schema["properties"][part]
    assert schema["description"]


@pytest.mark.parametrize("name", PROPERTIES)
def test_every_property_of_the_page_is_one_that_a_consumer_is_given(name: str) -> None:
    """What the page says of librdkafka is what it is told."""
    spec = ParallelConsumerSpec.model_validate(manifest()["spec"])
    assert name in consumer_config(render_static("orders", spec), "orders-0")


@pytest.mark.parametrize("test", TESTS)
def test_every_test_of_the_page_is_there(test: str) -> None:
    """The file has a function of that name."""
    path, name = test.split("::")
    functions = [node for node in ast.walk(ast.parse((ROOT / path).read_text())) if isinstance(node, ast.FunctionDef)]
    assert name in {function.name for function in functions}


def test_every_row_names_a_test() -> None:
    """No bound is a claim alone."""
    rows = [*MOVED.strip().splitlines(), *FOLLOWING.strip().splitlines()]
    assert len(rows) > 30
    for row in rows:
        assert re.search(r"`tests/\S+::test_\w+` \|$", row), row
