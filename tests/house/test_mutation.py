"""Mutation testing's own parts: what it is given is the same code, and what it writes says what it found."""

import re
from collections import Counter

from tests.support.mutation.report import PAGE, UNEXPLAINED, page, reasons
from tests.support.mutation.results import Results, Survivor
from tests.support.mutation.tree import ROOT, without_decorators

MODULE = '''"""A module."""


class Square:
    """A shape."""

    def __init__(self, side: int) -> None:
        self.side = side

    @property
    def area(self) -> int:
        """Side by side."""
        return self.side * self.side

    @property
    def round(self) -> bool:
        """Never."""
        return False

    @staticmethod
    def unit() -> "Square":
        """The one of one."""
        return Square(1)
'''


def test_properties_without_decorators_are_properties() -> None:
    """What mutmut is given behaves as what is shipped."""
    changed = without_decorators(MODULE)
    assert "@property" not in changed
    room: dict[str, type] = {}
    exec(compile(changed, "square", "exec"), room)
    square = room["Square"](3)
    assert (square.area, square.round, square.unit().area) == (9, False, 1)


def test_a_survivor_is_listed_with_its_reason_and_the_score_counts_what_was_noticed() -> None:
    """Timeouts count as noticed; what nobody excused is told apart."""
    excused = Survivor("m", "engine.Engine.take", "a | b", "a or b", "survived")
    other = Survivor("m", "engine.Engine.take", "x", "y", "suspicious")
    results = Results(Counter(killed=16, timeout=1, survived=2, suspicious=1), [excused, other], 61.4)
    assert results.score == 0.85
    text = page(results, "abc", {("engine.Engine.take", "a or b"): "the same"})
    assert "Commit abc: **85.0%** of 20 changes were noticed, in 61 s." in text
    assert "| `engine.Engine.take` | `a \\| b` | `a or b` | the same |" in text
    assert f"| `engine.Engine.take` | `x` | `y` | suspicious; {UNEXPLAINED} |" in text


def test_excuses_are_of_functions_that_exist() -> None:
    """A function that is renamed takes its excuses along or loses them."""
    for function, _ in reasons():
        module, *_, name = function.split(".")
        source = (ROOT / "runtime" / "parallel_consumer_runtime" / "core" / f"{module}.py").read_text()
        assert re.search(rf"def {name}\b", source), function


def test_the_page_is_of_a_run_that_was_good_enough() -> None:
    """At least 85 of 100 changes are noticed, and each survivor is excused."""
    text = PAGE.read_text()
    found = re.search(r"\*\*([\d.]+)%\*\* of ([\d,]+) changes", text)
    assert found
    assert float(found.group(1)) >= 85
    assert UNEXPLAINED not in text
