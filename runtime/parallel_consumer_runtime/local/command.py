"""`pconsumer run`: the loop between a run, its view and the keyboard."""

import threading
from contextlib import ExitStack
from pathlib import Path
from types import FrameType

from rich.console import Console

from parallel_consumer_runtime.kafka.embedded import EmbeddedBroker
from parallel_consumer_runtime.local.manifest import ManifestError, load
from parallel_consumer_runtime.local.run import LocalRun
from parallel_consumer_runtime.local.view import View
from parallel_consumer_runtime.settings import ParallelConsumerSpec

POLL_INTERVAL_S = 0.25


class StopRequest:
    """What a first and a second signal ask for. `signalled` is a signal handler; the rest is for the main thread."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        """Drain and end."""
        self.hurry = threading.Event()
        """End without waiting for records in flight."""

    def signalled(self, _number: int, _frame: FrameType | None) -> None:
        """Take a signal."""
        if self.stop.is_set():
            self.hurry.set()
        self.stop.set()


def topics(spec: ParallelConsumerSpec) -> list[str]:
    """Return every topic that a spec names."""
    named = list(spec.kafka.topics or [])
    if spec.results is not None:
        named.append(spec.results.topic)
    if spec.processing.dead_letter is not None:
        named.append(spec.processing.dead_letter.topic)
    return named


def run_manifest(
    path: Path,
    *,
    replicas: int | None,
    embedded: bool,
    bootstrap: str | None,
    handler_path: Path | None,
    until_drained: bool,
    request: StopRequest,
) -> str | None:
    """Run until told to stop, drained, or hopeless. Return why it failed, None when it did not."""
    console = Console()
    with ExitStack() as stack:
        try:
            manifest = load(path)
            if embedded:
                broker = stack.enter_context(EmbeddedBroker())
                broker.create_topics(topics(manifest.spec))
                bootstrap = broker.bootstrap
            run = LocalRun(path, replicas=replicas, bootstrap=bootstrap, handler_path=handler_path)
        except ManifestError as error:
            return str(error)
        stack.callback(run.stop, request.hurry.is_set)
        view = stack.enter_context(View(f"{manifest.name} from {path}", console))
        if embedded:
            view.say(f"embedded broker at {bootstrap}")
        while not request.stop.wait(POLL_INTERVAL_S):
            members = run.poll()
            if reason := run.failure():
                return reason
            view.update(members)
            view.tell(run.messages)
            if until_drained and run.drained():
                view.say("drained")
                return None
        view.say("stopping: records in flight are finished and committed; once more to end without that")
    return None
