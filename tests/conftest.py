"""Writes into each tier's report which rows of docs/systems.md its tests prove."""

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Turn `@pytest.mark.proves(…)` into properties of the report."""
    for item in items:
        rows = {row for mark in item.iter_markers("proves") for row in mark.args}
        item.user_properties.extend(("proves", str(row)) for row in sorted(rows))
