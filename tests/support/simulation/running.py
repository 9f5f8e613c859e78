"""Many seeds on a few processes: what failed, what was seen how often, and one fingerprint of all traces."""

import logging
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from hashlib import blake2b
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from tests.support.simulation.failure import Broken
from tests.support.simulation.plan import STEPS
from tests.support.simulation.planted import PLANTED, planted
from tests.support.simulation.sometimes import no_counts
from tests.support.simulation.world import World

CHUNK = 250
FAILURES_MAX = 20
KEPT = Path(__file__).parent / "seeds.txt"


class Failure(NamedTuple):
    """A seed that broke a guarantee."""

    seed: int
    steps: int
    what: str

    def __str__(self) -> str:
        """What broke, and the command that shows it again."""
        command = f"python -m tests.support.simulation replay {self.seed}"
        return f"seed {self.seed}: {self.what}\n  {command}{'' if self.steps == STEPS else f' --steps {self.steps}'}"


class Outcome(NamedTuple):
    """What a number of seeds showed."""

    seeds: int
    steps: int
    elapsed_s: float
    counts: dict[str, int]
    failures: list[Failure]
    rounds_max: int
    """The longest liveness phase."""
    fingerprint: str


class Found(NamedTuple):
    """Where a planted bug showed itself."""

    bug: str
    seed: int | None
    """None: nowhere."""
    what: str


def quiet() -> None:
    """Keep warnings about metadata, which are made here by the thousand, out of the output."""
    logging.getLogger("parallel_consumer_runtime.kafka").setLevel(logging.CRITICAL)


def kept_seeds() -> list[tuple[int, str]]:
    """Return the seeds that are kept for ever, and why."""
    lines = [line.split(maxsplit=1) for line in KEPT.read_text().splitlines() if line and not line.startswith("#")]
    return [(int(seed), why) for seed, why in lines]


def run_seeds(first: int, count: int, steps: int = STEPS) -> Outcome:
    """Run seeds in this process."""
    quiet()
    began = time.perf_counter()
    counts, failures, rounds_max, hashes = no_counts(), list[Failure](), 0, blake2b(digest_size=8)
    for seed in range(first, first + count):
        world = World(seed, steps)
        try:
            world.run()
        except Broken as broken:
            failures.append(Failure(seed, steps, str(broken)))
        hashes.update(world.hash().encode())
        rounds_max = max(rounds_max, world.rounds)
        for name, seen in world.counts.items():
            counts[name] += seen
    return Outcome(count, steps, time.perf_counter() - began, counts, failures, rounds_max, hashes.hexdigest())


def run_many(first: int, count: int, steps: int = STEPS, jobs: int = 2) -> Iterator[Outcome]:
    """Run seeds on several processes; yields the sum so far, again and again, and stops early at many failures."""
    began = time.perf_counter()
    counts, failures, seeds, rounds_max, hashes = no_counts(), list[Failure](), 0, 0, blake2b(digest_size=8)
    starts = range(first, first + count, CHUNK)
    sizes = [min(CHUNK, first + count - start) for start in starts]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for part in pool.map(run_seeds, starts, sizes, [steps] * len(sizes)):
            seeds += part.seeds
            failures += part.failures
            rounds_max = max(rounds_max, part.rounds_max)
            hashes.update(part.fingerprint.encode())
            for name, seen in part.counts.items():
                counts[name] += seen
            elapsed_s = time.perf_counter() - began
            yield Outcome(seeds, steps, elapsed_s, counts, failures, rounds_max, hashes.copy().hexdigest())
            if len(failures) >= FAILURES_MAX:
                pool.shutdown(cancel_futures=True)
                return


def find_planted(index: int, seeds_max: int) -> Found:
    """Return the first seed that shows a planted bug."""
    quiet()
    bug = PLANTED[index]
    with planted(bug):
        for seed in range(seeds_max):
            try:
                World(seed).run()
            except Broken as broken:
                return Found(bug.name, seed, str(broken))
    return Found(bug.name, None, "")


def find_all_planted(seeds_max: int, jobs: int = 2) -> Sequence[Found]:
    """Look for every planted bug, on several processes."""
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        return list(pool.map(find_planted, range(len(PLANTED)), [seeds_max] * len(PLANTED)))
