"""Real member processes of one group, from one spec: started, killed, stopped and watched as a kubelet would.

Each runs `python -m parallel_consumer_runtime consume` with the settings that the operator would render, under a stable
name `<name>-<ordinal>`, and dies with the tests.
"""

import itertools
import json
import os
import signal
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Self

from parallel_consumer_runtime.settings import (
    LIVE_ENV,
    POD_NAME_ENV,
    PORT_ENV,
    STATIC_ENV,
    LiveSettings,
    MemberStatus,
    ParallelConsumerSpec,
    render_live,
    render_static,
)
from tests.support.history import Fault, HistoryWriter, Life
from tests.support.ports import free_ports
from tests.support.processes import REPOSITORY, TiedProcess
from tests.support.recording import environment
from tests.support.waiting import wait_until

START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 40.0
REQUEST_TIMEOUT_S = 5.0
COMMAND = (sys.executable, "-m", "parallel_consumer_runtime", "consume")


@dataclass(frozen=True)
class RunningMember:
    """One process under a member's name."""

    life: Life
    port: int
    process: TiedProcess


def spec_for(
    bootstrap: str, topic: str, group: str, handler: str, *, results: str | None = None, **processing: Any
) -> ParallelConsumerSpec:
    """Return a spec with what tests share; further keyword arguments go into `spec.processing`, as a user writes them."""
    return ParallelConsumerSpec.model_validate(
        {
            "image": "not-used-here:1",
            "handler": f"tests.support.recording:{handler}",
            "kafka": {"bootstrapServers": bootstrap, "groupId": group, "topics": [topic]},
            "processing": processing,
            **({"results": {"topic": results}} if results else {}),
        }
    )


class MemberEndedError(AssertionError):
    """A process that was asked something has ended."""


class Members:
    """The processes of one group; leaves none behind.

    Args:
        name: the ParallelConsumer's name.
        spec: what all of them run.
        folder: for live settings, output and the history.
        work_ms: how long a recording handler waits.
    """

    def __init__(self, name: str, spec: ParallelConsumerSpec, folder: Path, *, work_ms: float = 5.0) -> None:
        self.name = name
        self.history_path = folder / "history"
        self.history = HistoryWriter(self.history_path)
        self._spec = spec
        self._folder = folder
        self._work_ms = work_ms
        self._live_path = folder / "live.json"
        self._incarnations = itertools.count(1)
        self._running: dict[int, RunningMember] = {}
        self.apply(spec)

    def apply(self, spec: ParallelConsumerSpec) -> LiveSettings:
        """Put a spec's live half where every member watches it, in one rename as a kubelet does; return it."""
        live = render_live(spec, spec.replicas)
        following = self._live_path.with_suffix(".next")
        following.write_text(live.model_dump_json(by_alias=True))
        following.rename(self._live_path)
        return live

    def start(self, ordinal: int, *, extra: Mapping[str, str] | None = None) -> RunningMember:
        """Start the process of an ordinal that does not run; does not wait for it to join."""
        if ordinal in self._running:
            raise ValueError(f"ordinal {ordinal} runs already")
        member = f"{self.name}-{ordinal}"
        incarnation = str(next(self._incarnations))
        (port,) = free_ports(1)
        variables = {
            **os.environ,
            "PYTHONPATH": str(REPOSITORY),
            STATIC_ENV: render_static(self.name, self._spec).model_dump_json(by_alias=True),
            LIVE_ENV: str(self._live_path),
            POD_NAME_ENV: member,
            PORT_ENV: str(port),
            **environment(self.history_path, incarnation, self._work_ms),
            **(extra or {}),
        }
        output = self._folder / f"{member}.{incarnation}.log"
        running = RunningMember(Life(member, incarnation), port, TiedProcess(COMMAND, output, env=variables))
        self._running[ordinal] = running
        return running

    def kill(self, ordinal: int) -> Life:
        """Kill -9, and reap; both are written to the history."""
        running = self._running.pop(ordinal)
        self.history.fault(running.life, Fault.KILL)
        running.process.send(signal.SIGKILL)
        running.process.wait(STOP_TIMEOUT_S)
        self.history.ended(running.life)
        return running.life

    def terminate(self, ordinal: int, timeout_s: float = STOP_TIMEOUT_S) -> int:
        """Send SIGTERM and return the exit status once it is gone; both are written to the history."""
        running = self._running.pop(ordinal)
        self.history.fault(running.life, Fault.TERM)
        running.process.send(signal.SIGTERM)
        code = running.process.wait(timeout_s)
        self.history.ended(running.life)
        return code

    def freeze(self, ordinal: int) -> None:
        """Send SIGSTOP: the process stands still and keeps its connections."""
        running = self._running[ordinal]
        self.history.fault(running.life, Fault.STOP)
        running.process.send(signal.SIGSTOP)

    def thaw(self, ordinal: int) -> None:
        """Send SIGCONT."""
        self._running[ordinal].process.send(signal.SIGCONT)

    def process(self, ordinal: int) -> TiedProcess:
        """Return the process that runs under an ordinal."""
        return self._running[ordinal].process

    def ordinals(self) -> list[int]:
        """Return the ordinals that run."""
        return sorted(self._running)

    def life(self, ordinal: int) -> Life:
        """Return the life of the process that runs under an ordinal."""
        return self._running[ordinal].life

    def reap(self, ordinal: int, timeout_s: float = STOP_TIMEOUT_S) -> int:
        """Wait for a process that ends by itself and return its status; it is written to the history."""
        running = self._running.pop(ordinal)
        code = running.process.wait(timeout_s)
        self.history.ended(running.life)
        return code

    def tails(self) -> list[str]:
        """Return the last lines of every process's output, for error messages."""
        return [f"--- {running.life.member}:\n{running.process.tail()}" for running in self._running.values()]

    def status(self, ordinal: int) -> MemberStatus | None:
        """Return what `/status` tells; None while it does not answer.

        Raises:
            MemberEndedError: it did; holds the last lines of its output.
        """
        answer = self.get(ordinal, "/status")
        return None if answer is None else MemberStatus.model_validate(json.loads(answer))

    def get(self, ordinal: int, path: str) -> str | None:
        """Return the body that a member's status server answers with; None while it is not there or not ready."""
        running = self._running[ordinal]
        if (code := running.process.exit_code) is not None:
            raise MemberEndedError(f"{running.life.member} ended with {code}:\n{running.process.tail()}")
        try:
            url = f"http://127.0.0.1:{running.port}{path}"
            with urllib.request.urlopen(url, timeout=REQUEST_TIMEOUT_S) as answer:
                return str(answer.read().decode())
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return None

    def refusal(self, ordinal: int, path: str) -> str | None:
        """Return what a member's status server says when it answers 503; None when it does not."""
        try:
            url = f"http://127.0.0.1:{self._running[ordinal].port}{path}"
            urllib.request.urlopen(url, timeout=REQUEST_TIMEOUT_S).close()
        except urllib.error.HTTPError as error:
            with error:
                return str(error.read().decode()) if error.code == HTTPStatus.SERVICE_UNAVAILABLE else None
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return None
        return None

    def wait_status(
        self, ordinal: int, holds: Callable[[MemberStatus], bool], what: str, timeout_s: float = START_TIMEOUT_S
    ) -> MemberStatus:
        """Return the first status for which a condition holds."""

        def probe() -> MemberStatus | None:
            status = self.status(ordinal)
            return status if status is not None and holds(status) else None

        return wait_until(probe, f"{self.name}-{ordinal}: {what}", timeout_s, state=self._running[ordinal].process.tail)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for running in self._running.values():
            running.process.send(signal.SIGKILL)
        for running in self._running.values():
            running.process.wait(STOP_TIMEOUT_S)
        self._running.clear()
        self.history.close()
