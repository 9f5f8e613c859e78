"""`python -m parallel_consumer_runtime` is `pconsumer`."""

import sys

from parallel_consumer_runtime.cli import main

if __name__ == "__main__":
    sys.exit(main())
