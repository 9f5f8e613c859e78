"""One real Kafka for the whole tier; every test has topics and a group of its own."""

import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.kafka import KafkaBroker, why_unavailable

TIER = "broker"
REQUIRED_TIERS_ENV = "PCONSUMER_REQUIRE_TIERS"
FIGURES = pytest.StashKey[list[str]]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark everything in this folder as the broker tier's."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.broker)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print what the tests measured, whether they passed or not."""
    if figures := config.stash.get(FIGURES, None):
        terminalreporter.section("figures of the broker tier")
        for line in figures:
            terminalreporter.line(line)


@pytest.fixture
def figure(request: pytest.FixtureRequest) -> Callable[[object], None]:
    """Return a function that adds a line to the figures at the end of the run, under the test's name."""
    lines = request.config.stash.setdefault(FIGURES, [])
    return lambda line: lines.append(f"{request.node.name}: {line}")


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaBroker]:
    """Run the tier's broker; skip with the reason where it cannot run, fail where the tier is required."""
    reason = why_unavailable()
    if reason is not None:
        message = f"the {TIER} tier cannot run: {reason}"
        if TIER in os.environ.get(REQUIRED_TIERS_ENV, "").replace(",", " ").split():
            pytest.fail(message)
        pytest.skip(message)
    with KafkaBroker() as broker:
        yield broker


@pytest.fixture
def unique(request: pytest.FixtureRequest) -> str:
    """Return a name for topics and groups that no other test and no earlier run uses."""
    name = request.node.name.removeprefix("test_").split("[")[0]
    return f"{name[:60].replace('_', '-')}-{uuid.uuid4().hex[:6]}"


@pytest.fixture
def topic(kafka: KafkaBroker, unique: str) -> str:
    """Return a new topic of 4 partitions."""
    kafka.create_topic(unique, 4)
    return unique


@pytest.fixture
def group(unique: str) -> str:
    """Return the name of a group that does not exist yet."""
    return f"{unique}-group"
