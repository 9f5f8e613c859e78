"""One member as a process of this machine: started, asked for its status, started again, ended."""

import ctypes
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from parallel_consumer_runtime.settings import (
    LIVE_ENV,
    POD_NAME_ENV,
    PORT_ENV,
    STATIC_ENV,
    MemberStatus,
    StaticSettings,
)

PERMANENT_STATUS = 78
"""The exit status of a member that another start would not help."""
BACKOFF_MAX_S = 30.0
STATUS_TIMEOUT_S = 1.0
_LOG_TAIL_BYTES = 4096
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


class MemberProcess:
    """Keeps one ordinal running, as a kubelet would: a member that dies is started again, after a growing wait.

    Args:
        name: the pod's name, `<name>-<ordinal>`.
        settings: the static half.
        live_path: the file with the live half.
        folder: where its log goes.
        handler_path: put first on the member's module search path.
    """

    def __init__(self, name: str, settings: StaticSettings, live_path: Path, folder: Path, handler_path: Path) -> None:
        self.name = name
        self.log_path = folder / f"{name}.log"
        self.starts = 0
        self.status: MemberStatus | None = None
        """The newest answer; kept while the process is down."""
        self._port = free_port()
        self._environment = _environment(name, settings, live_path, self._port, handler_path)
        self._process: subprocess.Popen[bytes] | None = None
        self._start_at = 0.0
        self._backoff_s = 1.0
        self._joined = False

    @property
    def exit_status(self) -> int | None:
        """None while it runs."""
        return None if self._process is None else self._process.poll()

    @property
    def hopeless(self) -> bool:
        """It ended before it ever joined its group, or for a reason that another start would not mend."""
        status = self.exit_status
        return status is not None and status != 0 and (not self._joined or status == PERMANENT_STATUS)

    def keep_running(self, now: float) -> None:
        """Start it when it does not run and its wait is over. `now` is monotonic seconds."""
        if self._process is None or (self.exit_status is not None and now >= self._start_at):
            self._start(now)

    def ask(self) -> None:
        """Refresh the status; a process that does not answer keeps its last one."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=STATUS_TIMEOUT_S)
        try:
            connection.request("GET", "/status")
            response = connection.getresponse()
            if response.status == http.HTTPStatus.OK:
                self.status = MemberStatus.model_validate(json.loads(response.read()))
                self._joined = self._joined or bool(self.status.partitions) or self.status.epoch > 0
        except (OSError, http.client.HTTPException, ValidationError, ValueError):
            return  # starting, busy or dead: the process's own state says which
        finally:
            connection.close()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, if it still runs."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def wait(self, timeout_s: float) -> None:
        """Wait for its end; kill it when the time is over."""
        if self._process is None:
            return
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def reason(self) -> str:
        """Return why it ended: its last error line, else the end of its log."""
        with self.log_path.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - _LOG_TAIL_BYTES))
            lines = log.read().decode(errors="replace").splitlines()
        errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
        return errors[-1] if errors else "\n".join(lines[-10:])

    def _start(self, now: float) -> None:
        self._backoff_s = min(BACKOFF_MAX_S, self._backoff_s * 2) if self.starts else 1.0
        self._start_at = now + self._backoff_s
        self.starts += 1
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "parallel_consumer_runtime", "consume"],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # A member must not outlive the run, not even when that is killed.
                preexec_fn=_end_with_parent,  # noqa: PLW1509 - one system call of a library that is loaded already
                start_new_session=True,
            )


def free_port() -> int:
    """Return a TCP port of loopback that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_all(members: list[MemberProcess], timeout_s: float) -> None:
    """Wait for the ends of all members, at most so long in all."""
    deadline = time.monotonic() + timeout_s
    for member in members:
        member.wait(max(0.1, deadline - time.monotonic()))


def _end_with_parent() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _environment(
    name: str, settings: StaticSettings, live_path: Path, port: int, handler_path: Path
) -> Mapping[str, str]:
    path = os.pathsep.join(filter(None, (str(handler_path), os.environ.get("PYTHONPATH", ""))))
    return {
        **os.environ,
        STATIC_ENV: settings.model_dump_json(by_alias=True),
        LIVE_ENV: str(live_path),
        POD_NAME_ENV: name,
        PORT_ENV: str(port),
        "PYTHONPATH": path,
    }
