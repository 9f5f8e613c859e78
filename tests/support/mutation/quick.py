"""A pytest plugin for runs against mutants: quick tests first, random ones in short, and no mutant takes the machine with it."""

import json
import resource
from pathlib import Path

import pytest
from hypothesis import Phase, settings

_MEMORY_MAX_BYTES = 4 << 30
_MEASURED = Path("mutmut-stats.json")

# Nothing is shrunk or kept: it only matters that something failed.
settings.register_profile(
    "mutation", max_examples=50, deadline=None, database=None, phases=[Phase.explicit, Phase.generate]
)
# A loop that a mutant made endless fills a list as often as not.
resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_MAX_BYTES, resource.getrlimit(resource.RLIMIT_AS)[1]))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the quickest first, by what mutmut measured: most mutants fall at once."""
    if _MEASURED.exists():
        took_s: dict[str, float] = json.loads(_MEASURED.read_text())["duration_by_test"]
        items.sort(key=lambda item: took_s.get(item.nodeid, 0.0))
