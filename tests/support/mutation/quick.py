"""A pytest plugin for runs against mutants: random tests in short, and no mutant takes the machine with it."""

import resource

from hypothesis import Phase, settings

_MEMORY_MAX_BYTES = 4 << 30

# Nothing is shrunk or kept: it only matters that something failed.
settings.register_profile(
    "mutation", max_examples=50, deadline=None, database=None, phases=[Phase.explicit, Phase.generate]
)
# A loop that a mutant made endless fills a list as often as not.
resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_MAX_BYTES, resource.getrlimit(resource.RLIMIT_AS)[1]))
