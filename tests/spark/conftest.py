"""One real Kafka and one local Spark for the whole tier; every test has topics of its own."""

import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.kafka import KafkaBroker
from tests.support.spark_jars import why_unavailable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TIER = "spark"
REQUIRED_TIERS_ENV = "PCONSUMER_REQUIRE_TIERS"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark everything in this folder as the tier's."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.spark)
            # PySpark and py4j leave closing their sockets to the garbage collector.
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))


def _check() -> None:
    if (reason := why_unavailable()) is None:
        return
    message = f"the {TIER} tier cannot run: {reason}"
    if TIER in os.environ.get(REQUIRED_TIERS_ENV, "").replace(",", " ").split():
        pytest.fail(message)
    pytest.skip(message)


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaBroker]:
    """Run the tier's broker; skip with the reason where it cannot run, fail where the tier is required."""
    _check()
    with KafkaBroker() as broker:
        yield broker


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    """Run the tier's Spark."""
    _check()
    from tests.support.spark_session import spark_session  # noqa: PLC0415 - needs Spark, which may not be there

    with spark_session(tmp_path_factory.mktemp("spark")) as session:
        yield session


@pytest.fixture
def topic(kafka: KafkaBroker, request: pytest.FixtureRequest) -> str:
    """Return a new topic of 2 partitions."""
    name = f"{request.node.name.removeprefix('test_').split('[')[0][:60].replace('_', '-')}-{uuid.uuid4().hex[:6]}"
    kafka.create_topic(name, 2)
    return name
