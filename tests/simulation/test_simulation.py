"""The simulation, in short: seeds without a failure, kept seeds, the same trace everywhere, and proof that it bites."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.simulation import World
from tests.support.simulation.planted import PLANTED, planted
from tests.support.simulation.report import found_table, summary, too_rare
from tests.support.simulation.running import find_all_planted, kept_seeds, quiet, run_seeds

ROOT = Path(__file__).parent.parent.parent
SEEDS = 400
PLANTED_SEEDS_MAX = 2_000
TRACED = range(1000, 1010)


@pytest.mark.proves(1, 5, 8, 10, 13, 17, 18, 20)
def test_random_seeds_break_nothing() -> None:
    """Under faults nothing is lost, doubled, reordered or leaked; without them everything becomes committed."""
    outcome = run_seeds(0, SEEDS)
    assert not outcome.failures, "\n".join(map(str, outcome.failures))
    assert not too_rare(outcome, least=1), "states that no seed reached"
    print(summary(outcome))


def test_kept_seeds_break_nothing_any_more() -> None:
    """What failed once does not fail again."""
    failures = [failure for seed, _ in kept_seeds() for failure in run_seeds(seed, 1).failures]
    assert not failures, "\n".join(map(str, failures))


def test_a_seed_gives_the_same_trace_in_every_process() -> None:
    """A failing seed fails again, wherever it is replayed: nothing depends on hashes, addresses or the time."""
    quiet()
    here = [World(seed).run() for seed in TRACED]
    program = (
        "from tests.support.simulation import World; from tests.support.simulation.running import quiet; quiet();"
        f"print(*[World(seed).run() for seed in range({TRACED.start}, {TRACED.stop})])"
    )
    for hash_seed in ("1", "2"):
        ran = subprocess.run(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        assert ran.stdout.split() == here


def test_every_planted_bug_is_found() -> None:
    """The simulation bites: each of the mistakes that are planted shows within two thousand seeds."""
    assert len(PLANTED) >= 15
    found = find_all_planted(PLANTED_SEEDS_MAX)
    print("\n".join(found_table(found)))
    assert not [each.bug for each in found if each.seed is None]


def test_a_failing_seed_tells_how_to_replay_it() -> None:
    """The failure's line is the command, and the command shows the same run."""
    with planted(PLANTED[0]):
        failure = run_seeds(0, 20).failures[0]
    command = f"-m tests.support.simulation replay {failure.seed}"
    assert f"python {command}" in str(failure)
    ran = subprocess.run(
        [sys.executable, *command.split()], cwd=ROOT, capture_output=True, text=True, timeout=120, check=True
    )
    assert ran.stdout.splitlines()[-1] == f"seed {failure.seed}: nothing broke; trace {World(failure.seed).run()}"
