"""A manifest as local processes: renders the settings, keeps the members running, follows the manifest's edits."""

import os
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from parallel_consumer_runtime.kafka.topics import partitions
from parallel_consumer_runtime.local.environment import render_env
from parallel_consumer_runtime.local.manifest import Manifest, ManifestError, load
from parallel_consumer_runtime.local.member_process import MemberProcess, wait_all
from parallel_consumer_runtime.settings import (
    LIVE_FILE,
    LiveSettings,
    MemberStatus,
    ParallelConsumerSpec,
    StaticSettings,
    render_live,
    render_static,
)

STOP_GRACE_S = 15.0
_STOP_STEP_S = 0.1


class MemberView(NamedTuple):
    """One member as the live view shows it."""

    name: str
    status: MemberStatus | None
    running: bool
    starts: int


class LocalRun:
    """Runs a manifest from `start` until `stop`. Not for several threads.

    Args:
        path: the manifest; edits of its live half are applied while it runs.
        replicas: instead of the manifest's.
        bootstrap: instead of the manifest's brokers.
        handler_path: where the handler's package lies; the manifest's folder by default.

    Raises:
        ManifestError: the manifest cannot be used.
    """

    def __init__(
        self,
        path: Path,
        *,
        replicas: int | None = None,
        bootstrap: str | None = None,
        handler_path: Path | None = None,
    ) -> None:
        self.path = path
        self._bootstrap = bootstrap
        self._seen = path.stat().st_mtime_ns if path.exists() else 0
        self.manifest = self._load()
        self.replicas = self.manifest.spec.replicas if replicas is None else replicas
        if self.replicas == 0:
            msg = f"{path}: spec.replicas: is 0, so that nothing would run; use --replicas"
            raise ManifestError(msg)
        self._static: StaticSettings = render_static(self.manifest.name, self.manifest.spec)
        environment = _environment(path, self.manifest.spec, (handler_path or path.parent).resolve())
        self._folder = tempfile.TemporaryDirectory(prefix="pconsumer-")
        self.folder = Path(self._folder.name)
        self._live_path = self.folder / LIVE_FILE
        self.live: LiveSettings = self._write_live(self.manifest.spec)
        self._members = [
            MemberProcess(f"{self.manifest.name}-{ordinal}", self._static, self._live_path, self.folder, environment)
            for ordinal in range(self.replicas)
        ]
        self.messages: list[str] = []
        """What the user should read; the view takes them out."""

    def poll(self) -> list[MemberView]:
        """Keep members running, follow the manifest, and return how everyone is. Call it a few times a second."""
        self._follow_manifest()
        now = time.monotonic()
        for member in self._members:
            if not self.failure() and (ended := member.keep_running(now)) is not None and not self.failure():
                self.messages.append(ended)
            member.ask()
        return [MemberView(m.name, m.status, m.exit_status is None, m.starts) for m in self._members]

    def failure(self) -> str | None:
        """Return why the run cannot go on: a member that another start would not help."""
        return next((f"{m.name}: {m.reason()}" for m in self._members if m.hopeless), None)

    def drained(self) -> bool:
        """Every partition of the topics is owned, and nothing is left to handle in any."""
        if not all(member.answered for member in self._members):
            return False
        statuses = [member.status for member in self._members if member.status is not None]
        if any(status.lag != 0 or status.buffered for status in statuses):
            return False
        owned = {(partition.topic, partition.partition) for status in statuses for partition in status.partitions}
        return owned == partitions(self._static)

    def stop(self, hurry: Callable[[], bool] = lambda: False) -> None:
        """End all members in order: drain, commit, close. Twice is fine.

        Args:
            hurry: asked while members drain; once true, they end without waiting for records in flight.
        """
        self._signal_all()
        deadline = time.monotonic() + self._static.drain_timeout + STOP_GRACE_S
        hurried = False
        while (left := wait_all(self._members, _STOP_STEP_S)) and time.monotonic() < deadline:
            if not hurried and hurry():
                hurried = True
                self._signal_all()
        for member in left:
            member.kill()
        self._folder.cleanup()

    def _signal_all(self) -> None:
        for member in self._members:
            member.signal(signal.SIGTERM)

    def _load(self) -> Manifest:
        manifest = load(self.path)
        if self._bootstrap is None:
            return manifest
        kafka = manifest.spec.kafka.model_copy(update={"bootstrap_servers": self._bootstrap})
        return manifest._replace(spec=manifest.spec.model_copy(update={"kafka": kafka}))

    def _write_live(self, spec: ParallelConsumerSpec) -> LiveSettings:
        live = render_live(spec, self.replicas)
        written = self._live_path.with_suffix(".new")
        written.write_text(live.model_dump_json(by_alias=True))
        os.replace(written, self._live_path)  # noqa: PTH105 - the same in one call
        return live

    def _follow_manifest(self) -> None:
        try:
            seen = self.path.stat().st_mtime_ns
        except FileNotFoundError:
            return
        if seen == self._seen:
            return
        self._seen = seen
        try:
            manifest = self._load()
        except ManifestError as error:
            self.messages.append(f"{error}\nthe running settings stay")
            return
        static = render_static(manifest.name, manifest.spec)
        changed = [n for n in StaticSettings.model_fields if getattr(static, n) != getattr(self._static, n)]
        was, self.manifest = self.manifest.spec, manifest
        changed += [name for name in ("replicas", "env") if getattr(was, name) != getattr(manifest.spec, name)]
        if changed:
            self.messages.append(f"{self.path}: {', '.join(changed)} changed: applied when this is started again")
        live = self._write_live(manifest.spec)
        if live.revision != self.live.revision:
            self.live = live
            self.messages.append(f"live settings changed: revision {live.revision}")


def _environment(path: Path, spec: ParallelConsumerSpec, handler_path: Path) -> dict[str, str]:
    """Return the variables of `spec.env`, with the handler's folder first among modules and the working folder nowhere."""
    env, problems = render_env(spec.env, os.environ)
    if problems:
        raise ManifestError("\n".join(f"{path}: {problem}" for problem in problems))
    given = env.get("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    return {**env, "PYTHONPATH": os.pathsep.join(filter(None, (str(handler_path), given))), "PYTHONSAFEPATH": "1"}
