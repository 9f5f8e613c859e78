"""How many processors this container may use: what handler processes are counted by when nobody says."""

import math
import os
import sys
from pathlib import Path

CPU_MAX = Path("/sys/fs/cgroup/cpu.max")


def usable_cpus(cpu_max: Path = CPU_MAX) -> int:
    """Return the processors that this process may run on, bounded by the container's limit, at least 1.

    A limit of 1.5 counts as 2: the half would lie idle otherwise.
    """
    cpus = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    try:
        quota, period = cpu_max.read_text().split()
    except (OSError, ValueError):  # no control group, or one of the first kind
        return cpus
    return cpus if quota == "max" else max(1, min(cpus, math.ceil(int(quota) / int(period))))
