"""The command: `python -m tests.support.simulation run | replay SEED | planted`."""

import argparse
import sys

from tests.support.simulation.failure import Broken
from tests.support.simulation.plan import STEPS
from tests.support.simulation.report import (
    ABOUT_PLANTED,
    ABOUT_RUN,
    commit,
    found_table,
    seen,
    summary,
    too_rare,
    write,
)
from tests.support.simulation.running import Outcome, find_all_planted, quiet, run_many
from tests.support.simulation.world import World

SEEDS = 20_000
PLANTED_SEEDS_MAX = 2_000
ENOUGH_SEEDS = 20_000
"""From so many seeds on, every event and state must have been seen a thousand times."""
RELEASE_SEEDS = 1_000_000
PROGRESS_EVERY_S = 10.0


def run(arguments: argparse.Namespace) -> int:
    """Run many seeds; fail when one fails, or when something was seen too seldom."""
    outcome: Outcome | None = None
    of = commit()  # before the run: it may take long, and the tree goes on
    told_s = 0.0
    for outcome in run_many(arguments.first, arguments.seeds, arguments.steps, arguments.jobs):
        if outcome.elapsed_s - told_s >= PROGRESS_EVERY_S:
            told_s = outcome.elapsed_s
            print(summary(outcome), flush=True)
    if outcome is None:
        return 0
    print("\n".join(seen(outcome)))
    for failure in outcome.failures:
        print(failure)
    rare = too_rare(outcome) if outcome.seeds >= ENOUGH_SEEDS else []
    if rare:
        print(f"seen too seldom: {', '.join(rare)}")
    print(summary(outcome))
    if arguments.write and not outcome.failures:
        title = "Simulation" if outcome.seeds < RELEASE_SEEDS else "Simulation, before a release"
        write(title, ABOUT_RUN, [f"{summary(outcome)}; commit {of}.", "", *seen(outcome)])
    return 1 if outcome.failures or rare else 0


def replay(arguments: argparse.Namespace) -> int:
    """Run one seed and print its trace."""
    quiet()
    world = World(arguments.seed, arguments.steps)
    try:
        world.run()
    except Broken as broken:
        print("\n".join(world.trace))
        print(f"seed {arguments.seed}: {broken}; trace {world.hash()}")
        return 1
    print("\n".join(world.trace))
    print(f"seed {arguments.seed}: nothing broke; trace {world.hash()}")
    return 0


def planted(arguments: argparse.Namespace) -> int:
    """Look for every planted bug."""
    of = commit()
    found = find_all_planted(arguments.seeds, arguments.jobs)
    print("\n".join(found_table(found)))
    if arguments.write:
        write("Planted bugs", ABOUT_PLANTED, [f"Commit {of}.", "", *found_table(found)])
    return 1 if any(each.seed is None for each in found) else 0


def main() -> int:
    """Parse and run. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.simulation", description=__doc__)
    verbs = parser.add_subparsers(required=True)
    many = verbs.add_parser("run", help="run many seeds")
    many.add_argument("--seeds", type=int, default=SEEDS)
    many.add_argument("--first", type=int, default=0)
    one = verbs.add_parser("replay", help="run one seed and print its trace")
    one.add_argument("seed", type=int)
    bugs = verbs.add_parser("planted", help="show that planted bugs are found")
    bugs.add_argument("--seeds", type=int, default=PLANTED_SEEDS_MAX, help="seeds for each at most")
    for verb in (many, one):
        verb.add_argument("--steps", type=int, default=STEPS, help="steps of the safety phase")
    for verb in (many, bugs):
        verb.add_argument("--jobs", type=int, default=2, help="processes")
        verb.add_argument("--write", action="store_true", help="write the figures into docs/reliability.md")
    many.set_defaults(verb=run)
    one.set_defaults(verb=replay)
    bugs.set_defaults(verb=planted)
    arguments = parser.parse_args()
    status: int = arguments.verb(arguments)
    return status


if __name__ == "__main__":
    sys.exit(main())
