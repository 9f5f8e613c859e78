"""Ends a run's node and removes all that it left, when told to or when whoever started the run is gone.

`python -m tests.support.cluster.guardian WORK`: starts the node in namespaces of its own and reads standard input, a
pipe that the run holds open. Its end, by whatever death, is the signal. The guardian is the first thing that a run
starts: whatever else the run makes, it makes under this guard.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.support.cluster import pki
from tests.support.cluster.node import ADDRESS

NETNS_FOLDER = Path("/run/netns")
CGROUP_FOLDER = Path("/sys/fs/cgroup")
TEARDOWN_TIMEOUT_S = 30.0


def namespace(work: Path) -> str:
    """Return the name of the run's network namespace."""
    return work.name


def cgroups(work: Path) -> list[Path]:
    """Return the run's cgroups: one per hierarchy with cgroup v1, one in all with v2."""
    candidates = [CGROUP_FOLDER / work.name, *(CGROUP_FOLDER.glob(f"*/{work.name}"))]
    return [path for path in candidates if path.is_dir()]


def start(work: Path) -> subprocess.Popen[bytes]:
    """Make keys and namespaces and start the node in them."""
    for name in ("logs", "tmp"):
        (work / name).mkdir()
    pki.issue_all(work / "pki", ADDRESS)
    subprocess.run(["ip", "netns", "add", namespace(work)], check=True, timeout=30)
    for hierarchy in [CGROUP_FOLDER, *CGROUP_FOLDER.iterdir()]:
        # Only a hierarchy's root takes a folder that is a cgroup; elsewhere this is refused.
        if (hierarchy / "cgroup.procs").exists():
            with contextlib.suppress(OSError):
                (hierarchy / work.name).mkdir(exist_ok=True)
                _inherit_cpuset(hierarchy, hierarchy / work.name)
    # Not `ip netns exec`: it mounts /sys anew, and the kubelet would find no cgroups.
    enter = ["nsenter", f"--net={NETNS_FOLDER / namespace(work)}"]
    unshare = ["unshare", "--mount", "--pid", "--fork", "--ipc", "--uts", "--kill-child"]
    with (work / "logs" / "node.log").open("wb") as log:
        return subprocess.Popen(
            [*enter, *unshare, sys.executable, "-m", "tests.support.cluster.node", str(work)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def tear_down(work: Path, node: subprocess.Popen[bytes] | None) -> None:
    """Kill the node and whatever else runs in its network, and remove its namespaces, cgroups and folder.

    Raises:
        RuntimeError: something resisted until the deadline; says what.
    """
    if node is not None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(node.pid, signal.SIGKILL)
        node.wait(TEARDOWN_TIMEOUT_S)
    deadline = time.monotonic() + TEARDOWN_TIMEOUT_S
    while (left := _processes(work)) and time.monotonic() < deadline:
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
    subprocess.run(["ip", "netns", "del", namespace(work)], check=False, capture_output=True, timeout=30)
    while cgroups(work) and time.monotonic() < deadline:
        for group in cgroups(work):
            for folder, _, _ in os.walk(group, topdown=False):
                with contextlib.suppress(OSError):
                    Path(folder).rmdir()
        time.sleep(0.05)
    shutil.rmtree(work, ignore_errors=True)
    remains = [work, NETNS_FOLDER / namespace(work), *cgroups(work)]
    if resisting := [str(path) for path in remains if path.exists()]:
        raise RuntimeError(f"not removed within {TEARDOWN_TIMEOUT_S:g} s: {', '.join(resisting)}; processes: {left}")


def _processes(work: Path) -> list[int]:
    """Return who still lives in the run's network namespace or its cgroups (pods have networks of their own)."""
    ran = subprocess.run(
        ["ip", "netns", "pids", namespace(work)], capture_output=True, text=True, check=False, timeout=30
    )
    found = {int(pid) for pid in ran.stdout.split()}
    for group in cgroups(work):
        for path in group.rglob("cgroup.procs"):
            with contextlib.suppress(OSError):
                found |= {int(pid) for pid in path.read_text().split()}
    return sorted(found - {os.getpid()})


def _inherit_cpuset(parent: Path, child: Path) -> None:
    """A cpuset of cgroup v1 is born empty and takes no process then."""
    for name in ("cpuset.cpus", "cpuset.mems"):
        if (parent / name).exists():
            (child / name).write_text((parent / name).read_text())


def main() -> None:
    """Guard one run."""
    work = Path(sys.argv[1])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    node: subprocess.Popen[bytes] | None = None
    try:
        node = start(work)
        sys.stdin.buffer.read()
    finally:
        tear_down(work, node)


if __name__ == "__main__":
    main()
