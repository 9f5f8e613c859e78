"""How large a fault test is: continuous integration's figure, or a release's (`PCONSUMER_RELEASE=1`)."""

import os
from typing import TypeVar

RELEASE_ENV = "PCONSUMER_RELEASE"

Figure = TypeVar("Figure")


def released() -> bool:
    """Tell whether this run takes the release's figures."""
    return os.environ.get(RELEASE_ENV, "") not in {"", "0"}


def scaled(every_run: Figure, release: Figure) -> Figure:
    """Return the figure of this run."""
    return release if released() else every_run
