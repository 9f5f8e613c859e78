"""What the log lines of a member and of its handler processes look like."""

import logging
import sys
from collections.abc import Mapping


def configure(environment: Mapping[str, str]) -> None:
    """Log to stderr, from the level that LOG_LEVEL names; INFO when it is not set."""
    logging.basicConfig(
        level=environment.get("LOG_LEVEL", "INFO"),
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
        stream=sys.stderr,
    )
