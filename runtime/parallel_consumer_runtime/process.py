"""The process of one member: settings from the environment, signals, exit status, and the reason of its end.

Exit status: 0 after an ordered stop; 78 when the user must change something; 75 when another start may do better.
"""

import asyncio
import ctypes
import gc
import logging
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

import uvloop
from pydantic import ValidationError

from parallel_consumer_runtime import live
from parallel_consumer_runtime.errors import PermanentError, RuntimeFailure
from parallel_consumer_runtime.handlers import Handler
from parallel_consumer_runtime.importing import load_handler
from parallel_consumer_runtime.kafka.inquiry import Inquiry
from parallel_consumer_runtime.kafka.inquiry_lookup import OffsetsLookUp
from parallel_consumer_runtime.kafka.startup import check
from parallel_consumer_runtime.logs import configure
from parallel_consumer_runtime.member import Member
from parallel_consumer_runtime.observe import Board, StatusServer
from parallel_consumer_runtime.settings import (
    LIVE_ENV,
    POD_NAME_ENV,
    PORT_ENV,
    STATIC_ENV,
    STATUS_PORT,
    LiveSettings,
    StaticSettings,
    explain,
)

GC_THRESHOLDS = (50_000, 20, 50)
"""Records are no cycles, and there are thousands of them: Python's default of 700 would walk them over and over, which
cost a fifth of the throughput. What handlers leave in cycles is collected all the same, a little later."""
TIMER_SLACK_NS = 1_000
"""Linux lets a timer be 50 µs late by default, which eight records of 5 ms each notice: a hundredth of the rate."""
TERMINATION_LOG = Path("/dev/termination-log")

_log = logging.getLogger(__name__)


def main(environment: Mapping[str, str] = os.environ) -> int:
    """Run one member until it is told to stop. Return the exit status."""
    configure(environment)
    try:
        _run(environment)
    except RuntimeFailure as failure:
        print(f"error: {failure}", file=sys.stderr, flush=True)  # noqa: T201 - the reason, for people and kubelets
        _leave_reason(str(failure))
        return failure.exit_status
    return 0


def _run(environment: Mapping[str, str]) -> None:
    name = _required(environment, POD_NAME_ENV)
    live_path = Path(_required(environment, LIVE_ENV))
    try:
        settings = StaticSettings.model_validate_json(_required(environment, STATIC_ENV))
    except ValidationError as error:
        raise PermanentError(f"{STATIC_ENV}: " + "; ".join(explain(error))) from error
    port = int(environment.get(PORT_ENV, STATUS_PORT))
    first = live.read(live_path)
    handler = load_handler(settings.handler)
    check(settings, name)
    _sharpen_timers()
    gc.collect()
    gc.freeze()  # what was imported stays: never walk it again
    gc.set_threshold(*GC_THRESHOLDS)
    board = Board()
    connections = settings.monitoring.connections
    # Half of the connections: who waits for the brokers must not keep the kubelet from asking how the process is.
    inquiry = Inquiry(lambda: OffsetsLookUp(settings, name), waiting_max=max(1, connections // 2))
    server = StatusServer(board, port, connections_max=connections, asker=inquiry)
    server.start()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_consume(name, settings, first, live_path, handler, board))
    finally:
        inquiry.stop()
        server.stop()


async def _consume(  # noqa: PLR0917 - each is one collaborator, named at the only call
    name: str, settings: StaticSettings, first: LiveSettings, live_path: Path, handler: Handler, board: Board
) -> None:
    member = Member(name, settings, first, handler, board)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, member.stop)
    watcher = asyncio.create_task(live.watch(live_path, first, member.apply))
    try:
        await member.run()
    finally:
        watcher.cancel()


def _sharpen_timers() -> None:
    """Ask the kernel to wake this thread, the event loop's, on time; a kernel that cannot is left alone."""
    set_timer_slack = 29
    if ctypes.CDLL(None, use_errno=True).prctl(set_timer_slack, TIMER_SLACK_NS, 0, 0, 0) != 0:
        _log.debug("timer slack stays as it is: %s", os.strerror(ctypes.get_errno()))


def _required(environment: Mapping[str, str], name: str) -> str:
    try:
        return environment[name]
    except KeyError:
        msg = f"the environment variable {name} is not set; the operator and `pconsumer run` set it"
        raise PermanentError(msg) from None


def _leave_reason(reason: str) -> None:
    """Tell the kubelet, which puts it into the pod's status."""
    if TERMINATION_LOG.exists():
        try:
            TERMINATION_LOG.write_text(reason[:4096])
        except OSError as error:
            _log.warning("%s: %s", TERMINATION_LOG, error)
