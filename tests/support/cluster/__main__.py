"""`python -m tests.support.cluster run -- COMMAND…`."""

import sys

from tests.support.cluster.run import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
