"""A handler process: imports the handler, calls it, tells each outcome at once, ends with its member.

Keeps: the page names a call before it begins; an outcome is told before the next call begins, so that a
crash repeats no neighbour's work.
"""

import ctypes
import faulthandler
import gc
import os
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, cast

from parallel_consumer_runtime.child.outcomes import of_batch, of_error, of_return
from parallel_consumer_runtime.child.wire import NO_CALL, NOT_READY, READ_BYTES, READY, Frames, Page, encode
from parallel_consumer_runtime.handlers import Context, Record
from parallel_consumer_runtime.importing import load_handler
from parallel_consumer_runtime.logs import configure

PlainHandler = Callable[[Any, Context], object]


def main(handler_path: str, calls_fd: int, outcomes_fd: int, page_fd: int, parent: int) -> int:
    """Serve until the member closes the pipe of calls. Return the exit status.

    Args:
        handler_path: package.module:function.
        calls_fd: where lists come from of calls: sequence, member, attempt, and a record or a list of records; and of
            partitions that are given up: NO_CALL, topic, partition, None.
        outcomes_fd: where (sequence, *outcome) goes.
        page_fd: the shared page.
        parent: the member's process id.
    """
    for fd in (calls_fd, outcomes_fd, page_fd):
        # What a handler starts must not hold the pipes open when this process is gone.
        os.set_inheritable(fd, False)
    page = Page(page_fd)
    os.close(page_fd)
    _mind_signals(page)
    _die_with(parent)
    try:
        return _import_and_serve(handler_path, calls_fd, outcomes_fd, page)
    except BrokenPipeError:
        return 0  # the member is gone: there is nobody to tell
    finally:
        # From here on the interpreter ends by itself, and an exception would only spoil that.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _import_and_serve(handler_path: str, calls_fd: int, outcomes_fd: int, page: Page) -> int:
    faulthandler.enable()  # a crash in native code leaves the handler's stack on stderr, which is the pod's log
    configure(os.environ)
    try:
        handler = cast("PlainHandler", load_handler(handler_path))
    except BaseException as error:  # noqa: BLE001 - importing runs the user's code
        _write(outcomes_fd, encode((NO_CALL, NOT_READY, f"{type(error).__name__}: {error}")))
        return 1
    gc.collect()
    gc.freeze()
    _write(outcomes_fd, encode((NO_CALL, READY)))
    try:
        _serve(handler, calls_fd, outcomes_fd, page)
    finally:
        # The member's signal comes beside the end of its calls, and must not cut short what closes the processors.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _end(handler)
    return 0


def _serve(handler: PlainHandler, calls_fd: int, outcomes_fd: int, page: Page) -> None:
    frames = Frames()
    while data := os.read(calls_fd, READ_BYTES):
        for calls in frames.feed(data):
            for sequence, member, attempt, argument in calls:
                if sequence == NO_CALL:
                    _end_partition(handler, topic=member, partition=attempt)
                    continue
                page.begun = sequence
                _write(outcomes_fd, _outcome(handler, sequence, argument, Context(member, attempt)))
                if page.ending:
                    return


def _end_partition(handler: PlainHandler, topic: str, partition: int) -> None:
    if (end := getattr(handler, "end_partition", None)) is not None:
        end(topic, partition)


def _end(handler: PlainHandler) -> None:
    """Let a pipeline close its processors. Known by its methods: its module would bring an event loop to every handler."""
    if all(hasattr(handler, method) for method in ("end_partition", "end_worker", "end")):
        from asyncio import run  # noqa: PLC0415 - as above

        scoped: Any = handler
        scoped.end_worker()
        run(scoped.end())


def _outcome(handler: PlainHandler, sequence: int, argument: list[Any] | tuple[Any, ...], context: Context) -> bytes:
    """Call the handler. Return its outcome's frame, whatever it does short of ending the process."""
    try:
        if isinstance(argument, list):
            returned = handler([Record(*record) for record in argument], context)
            return encode((sequence, *of_batch(returned)))
        return encode((sequence, *of_return(handler(Record(*argument), context))))
    except BaseException as error:  # noqa: BLE001 - a handler may raise anything, SystemExit included
        return encode((sequence, *of_error(error)))


def _write(fd: int, frame: bytes) -> None:
    view = memoryview(frame)
    while view:
        view = view[os.write(fd, view) :]


def _mind_signals(page: Page) -> None:
    """Go on while the member drains, however it was told to end; end when the member says so.

    Functions, not SIG_IGN: what a handler starts would inherit that.
    """

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        if page.ending:
            raise SystemExit(0)

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)


def _die_with(parent: int) -> None:
    """Let the kernel kill this process when its member dies; where it cannot, the closed pipe ends it after its record."""
    if sys.platform == "linux":
        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        raise SystemExit(0)
