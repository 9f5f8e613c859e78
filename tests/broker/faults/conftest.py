"""Faults on real parts: a broker of their own that may be killed, behind a proxy that may be cut, and kept figures."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.endangered import Endangered, endangered_broker
from tests.support.kafka import KafkaBroker
from tests.support.reliability import FIGURES_FILE_ENV

PARTITIONS = 8


@pytest.fixture
def figure(request: pytest.FixtureRequest, figure: Callable[[object], None]) -> Callable[[object], None]:
    """Return the tier's `figure`, which also appends to the file that `tests.support.reliability` reads."""
    path = os.environ.get(FIGURES_FILE_ENV)

    def tell(line: object) -> None:
        figure(line)
        if path:
            with Path(path).open("a", encoding="utf-8") as file:
                file.write(json.dumps({"test": request.node.name, "line": str(line)}) + "\n")

    return tell


@pytest.fixture
def wide_topic(kafka: KafkaBroker, unique: str) -> str:
    """Return a new topic of 8 partitions."""
    kafka.create_topic(unique, PARTITIONS)
    return unique


@pytest.fixture(scope="session")
def endangered(kafka: KafkaBroker) -> Iterator[Endangered]:
    """Run a second broker; needs what the tier's own broker needs, which is why that one is asked for."""
    del kafka
    with endangered_broker() as found:
        yield found


@pytest.fixture
def endangered_topic(endangered: Endangered, unique: str) -> str:
    """Return a new topic of 8 partitions on the broker that may be killed."""
    endangered.broker.create_topic(unique, PARTITIONS)
    return unique
