"""`python -m parallel_consumer_operator`: runs the operator; its end without an order is an exit status of 1."""

import asyncio
import logging
import os
import sys

from parallel_consumer_operator.app import run
from parallel_consumer_operator.errors import OperatorError
from parallel_consumer_operator.settings import read_settings


def main() -> int:
    """Run until told to stop. Return the exit status."""
    try:
        settings = read_settings(os.environ)
        logging.basicConfig(
            level=settings.log_level,
            format="%(asctime)s %(levelname)s %(name)s %(message)s",
            stream=sys.stderr,
        )
        asyncio.run(run(settings))
    except OperatorError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201 - the reason, for people and kubelets
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
