"""One member as a process of this machine: started, asked for its status, started again, ended."""

import ctypes
import http.client
import json
import os
import random
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
BACKOFF_RESET_S = 60.0
"""A member that ran so long is started again at once."""
STATUS_TIMEOUT_S = 1.0
PORTS = range(20_000, 32_000)
"""Below the range that Linux gives to outgoing connections, so that none of those takes a port before its listener."""
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
        env: variables beside this process's own.
    """

    def __init__(
        self, name: str, settings: StaticSettings, live_path: Path, folder: Path, env: Mapping[str, str]
    ) -> None:
        self.name = name
        self.log_path = folder / f"{name}.log"
        self.starts = 0
        self.status: MemberStatus | None = None
        """The newest answer; kept while the process is down."""
        self.answered = False
        """Whether it answered when it was last asked."""
        self._environment = {
            **os.environ,
            **env,
            STATIC_ENV: settings.model_dump_json(by_alias=True),
            LIVE_ENV: str(live_path),
            POD_NAME_ENV: name,
        }
        self._port = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._started_at = 0.0
        self._backoff_s = 1.0
        self._start_at: float | None = None
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

    def keep_running(self, now: float) -> str | None:
        """Start it when it does not run and its wait is over; say once what became of one that ended.

        Args:
            now: monotonic seconds.
        """
        if self._process is None:
            self._start(now)
        elif self._process.poll() is None:
            return None
        elif self._start_at is None:
            if now - self._started_at >= BACKOFF_RESET_S:
                self._backoff_s = 1.0
            self._start_at = max(now, self._started_at + self._backoff_s)
            return f"{self.name} {self._end()}; it is started again in {self._start_at - now:.0f} s"
        elif now >= self._start_at:
            self._backoff_s = min(BACKOFF_MAX_S, self._backoff_s * 2)
            self._start_at = None
            self._start(now)
        return None

    def ask(self) -> None:
        """Refresh the status; a process that does not answer keeps its last one."""
        self.answered = False
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=STATUS_TIMEOUT_S)
        try:
            connection.request("GET", "/status")
            response = connection.getresponse()
            if response.status == http.HTTPStatus.OK:
                self.status = MemberStatus.model_validate(json.loads(response.read()))
                self.answered = True
                self._joined = self._joined or bool(self.status.partitions) or self.status.epoch > 0
        except (OSError, http.client.HTTPException, ValidationError, ValueError):
            return  # starting, busy or dead: the process's own state says which
        finally:
            connection.close()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, if it still runs."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def kill(self) -> None:
        """End it without asking, and wait for that."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def reason(self) -> str:
        """Return why it ended: its last error line, else the end of its log."""
        lines = self._log_tail()
        return _last_error(lines) or "\n".join(lines[-10:]) or self._end()

    def _end(self) -> str:
        status = self.exit_status or 0
        how = f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        error = _last_error(self._log_tail()) if status > 0 else None
        return f"{how} ({error})" if error else how

    def _log_tail(self) -> list[str]:
        with self.log_path.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - _LOG_TAIL_BYTES))
            return log.read().decode(errors="replace").splitlines()

    def _start(self, now: float) -> None:
        self._started_at = now
        self._port = free_port()
        self.starts += 1
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "parallel_consumer_runtime", "consume"],
                env={**self._environment, PORT_ENV: str(self._port)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # A member must not outlive the run, not even when that is killed.
                preexec_fn=_end_with_parent,  # noqa: PLW1509 - one system call of a library that is loaded already
                start_new_session=True,
            )


def free_port() -> int:
    """Return a TCP port of loopback that is free now."""
    for port in random.sample(PORTS, 100):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_all(members: list[MemberProcess], timeout_s: float) -> list[MemberProcess]:
    """Wait for the ends of all members, at most so long; return those that still run."""
    deadline = time.monotonic() + timeout_s
    while (left := [m for m in members if m.starts and m.exit_status is None]) and time.monotonic() < deadline:
        time.sleep(min(0.02, timeout_s))
    return left


def _last_error(lines: list[str]) -> str | None:
    return next((line.removeprefix("error: ") for line in reversed(lines) if line.startswith("error: ")), None)


def _end_with_parent() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
