"""What a process holds, from /proc: memory, threads, file descriptors; and whether that grows."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

MIB = 1024 * 1024


class Resources(NamedTuple):
    """One sample."""

    at_s: float
    rss_bytes: int
    threads: int
    descriptors: int


def resources(pid: int, at_s: float) -> Resources:
    """Sample a living process.

    Raises:
        OSError: there is no such process.
    """
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    rss_bytes = int(fields["VmRSS"].split()[0]) * 1024
    return Resources(at_s, rss_bytes, int(fields["Threads"]), sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir()))


def slope_per_s(samples: Sequence[Resources]) -> float:
    """Return the growth of memory, bytes per second, by least squares."""
    mean_at = sum(one.at_s for one in samples) / len(samples)
    mean_rss = sum(one.rss_bytes for one in samples) / len(samples)
    spread = sum((one.at_s - mean_at) ** 2 for one in samples)
    return sum((one.at_s - mean_at) * (one.rss_bytes - mean_rss) for one in samples) / spread
